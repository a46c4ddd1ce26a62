"""The words of the benchmarks' pages in Chinese.

``PARALLEL``: a text of a page's module, and beside it the Chinese one with as many headings, items and
paragraphs. ``SENTENCES``: what is put together sentence by sentence, with ``VALUES`` in them. ``CELLS``: heads
of tables, and cells that are words. Names of mistakes, models and layers stay as the catalogues have them.
"""

from __future__ import annotations

from benchmarks.faults import page as faults
from benchmarks.recorded_runs import page as recorded_runs
from benchmarks.sweep import page as sweep
from benchmarks.training_faults import page as training_faults

FAULTS = """# 植入的错误

本页由 `python -m benchmarks.faults` 写成。在 {pairs} 对正确的小模型（torch 对 paddle）中植入了移植时常犯的 {faults} 个错误，每次一个或几个；此外，正确的模型对在 {twins} 个种子上对齐，还对齐了 {rewritings} 个用其他运算得出相同结果的正确移植。每个错误以及对它应有的结论都是 `benchmarks/faults/catalogue` 中的数据；错误的名称保持目录中的写法。

- **检出**：工具说两者不同。
- **区分**：工具说两者不同，并且对没有该错误的同一对说正确。
- **定位**：工具首先指出有错的层；错误在移植模型自身的代码中时，还指出有错的那一行；有多个错误时，每一个都指出。
- **指明原因**：对有错的层给出正确的原因；有多个错误时，每一个都给出。
- **错怪其他层**：工具同时怪罪了正确的层的错误个数。
- **误报**：正确的模型对被工具说成不同。总说“不同”的工具能检出一切，所以各列要合起来看才有意义。
- **代价**：有错的一对所用的处理器时间，是没有该错误的同一对的多少倍。
- **崩溃**：没有任何结论；既不算检出，也不算误报。

PaDiff 运行两次：一次用默认设置（`auto_diff(port, reference, inputs)`；权重中的错误用 `auto_weights=False`），一次*调优*：把正确的权重交给它（默认时它不处理 BatchNorm 的统计量），不对单个函数配对（`PADIFF_API_CHECK=OFF`；函数个数不同时它会放弃），不在设备之间移动模型（`PADIFF_CUDA_MEMORY=OFF`；LSTM 会因此失败），并使用其文档示例中的容差（`atol=1e-4`、`rtol=0`、`strict`）。reprod_log 按复现指南使用：两侧记录输出、损失和五轮训练的损失，以平均差 1e-6 比较；权重交给它。它指出的是所记录的项，从不指出层。
"""

RECORDED_RUNS = """# 运行记录

本页由 `python -m benchmarks.recorded_runs`（`make bench-recorded`）写成：{versions}, {machine}。

在四个小模型的训练中各犯 {mistakes} 个错误之一：带 BatchNorm 的卷积网络、带 LayerNorm 的感知机、带旋转位置表和分组键且批大小大于 1 的 Llama，以及带 GRU 的标注模型。两侧各录制三步（带优化器），既录完整张量也录 sketch，torch 对 paddle，以及各自对自身。`pf.compare` 只得到两个文件夹，没有模型。此外比较了 {correct} 对没有错误的记录：同样的模型，若干种子，其他名称、嵌套和布局，评估和训练，有无优化器，一个进程和两个进程。

- **检出**：判定为不一致。设置的差别太小而看不出影响、以及被中断的运行，有说明即算检出。
- **定位**：首个差异的阶段、步、进程和层都正确。
- **指明原因**：在记录足以证明原因时，原因也正确。

每个错误以及对它应有的结论都是 `benchmarks/recorded_runs/mistakes.py` 中的一项。
"""

TRAINING_FAULTS = """# 训练错误

本页由 `python -m benchmarks.training_faults`（`make bench-training`）写成。在小模型的训练、指标和初始化中植入了 {count} 个错误，每次一个，torch 对 paddle。与之对应的 {twins} 个没有错误的版本各用 {seeds} 个种子比较。

- **检出**：判定为不一致。
- **定位**：首个差异的阶段和步正确。
- **指明原因**：其原因代码也正确。
"""

SWEEP = """# 正确移植的噪声，以及错误高出噪声多少

由 `python -m benchmarks.sweep` 写成：{seeds}，eval 和 train 模式，float32，{versions}, {machine}, CPU，单线程。

得分是误差与这次调用在这个输入上不可避免的舍入之比。一次调用允许 {limit}，整个模型允许 {end_limit}。这里对*每次*调用计算所有下限：值的大小、所有输入变动一个末位单位时结果的变动、以及任一侧与其自身 float64 结果的距离。对齐时只在代价最低的下限会判错的地方才求代价更高的下限，所以报告中的得分可能比这里大，至多 {limit}。

正确调用的误差至多是两侧各自到 float64 距离之和，其下限至少是两者中较大的一个。因此得分至多为 2，除非某个库被要求用 float64 计算时没有照做。界限取其两倍。
"""

PARALLEL = (
    (faults.INTRODUCTION, FAULTS),
    (recorded_runs.INTRODUCTION, RECORDED_RUNS),
    (training_faults.INTRODUCTION, TRAINING_FAULTS),
    (sweep.INTRODUCTION, SWEEP),
    (
        sweep.PROCESSORS,
        """## 在其他处理器上

向量较短时，同样的内核以其他次序求和（`benchmarks/processors.py`）。在较旧的处理器上，每一对只在训练模式下运行。""",
    ),
    (
        sweep.KINDS,
        """## 正确的调用，按类型

已配对的调用给出、回传或留作参数梯度的每个张量。""",
    ),
    (
        sweep.PAIRS,
        """## 正确的模型对

每一对的最大得分；整个模型的得分以对齐所见为准，至多 {end_limit}。""",
    ),
    (
        sweep.SMALLEST_ONES,
        """## 最小的植入错误

每个错误在任一处理器上的最低得分。""",
    ),
    (
        sweep.FAINT,
        """## 接近噪声的错误

在 timm 每个模型中间的一个归一化层里，epsilon 取十分之一，或以 1e-5 代替 1e-6。其影响有多大取决于旁边的方差：方差大时，错误小于界限，*不指出任何层*。这些既不算找到也不算漏掉，也不算作上面最小的错误。""",
    ),
    (
        sweep.PLANTED,
        """## 所有植入的错误

每次在本来正确的移植中植入一个错误。*正确*：首先指出的层就是有错的层，并且没有怪罪其他层。""",
    ),
    (
        sweep.REAL,
        """## 已发布模型中的真实差异

`paddle.vision` 所带的、与 torchvision 模型不同的移植。列出了它们的全部差异；有错的层是其中的第一个。""",
    ),
    (
        sweep.HIDDEN,
        """## 其他名称、次序和嵌套

移植模型的调用中，与伪装之前一样配对到参考模型同一调用的个数。""",
    ),
    (
        sweep.LOW,
        """## 半精度

两个模型都转换为该数据类型；移植模型在 CPU 上没有内核时略去这一对。""",
    ),
)

VALUES = {
    "{count:d} seed ({processor})": "{count} 个种子（{processor}）",
    "{count:d} seeds ({processor})": "{count} 个种子（{processor}）",
    "located, not named": "已定位，未指明原因",
    "not detected": "未检出",
    "not located": "未定位",
    "not named": "未指明原因",
    "crashed": "崩溃",
    "also blames {paths}": "还怪罪 {paths}",
    "torch to paddle, {tensors}": "torch → paddle，{tensors}",
    "torch to torch, {tensors}": "torch → torch，{tensors}",
    "paddle to paddle, {tensors}": "paddle → paddle，{tensors}",
    "nothing differs": "没有差异",
    "step {step:d}, {phase}, no cause": "第 {step} 步，{phase}，没有原因",
    "step {step:d}, {phase}, {code}": "第 {step} 步，{phase}，{code}",
    "{code} or {other}": "{code} 或 {other}",
}

SENTENCES = {
    # faults
    "parfocal by cause": "parfocal，按原因",
    "What parfocal misses": "parfocal 漏掉的",
    "Nothing.": "无。",
    "**{fault}** ({code}): {missed}. It says: {said}": "**{fault}**（{code}）：{missed}。它说：{said}",
    "What a wrong pair costs": "有错的一对的代价",
    (
        "The processor's time of `pf.align` on a pair with a mistake, the explanation included, over that on "
        "the same pair without it: {median}x in the median, {most}x at most."
    ): "`pf.align` 在有错的一对上所用的处理器时间（包括解释）与没有该错误的同一对之比：中位数 {median}x，最大 {most}x。",
    "False alarms of parfocal": "parfocal 的误报",
    "**{name}**: {said}": "**{name}**：{said}",
    "Not detected ({count}): {names}.": "未检出（{count}）：{names}。",
    "Crashed ({count}): {names}.": "崩溃（{count}）：{names}。",
    "Crashed (0): none.": "崩溃（0）：无。",
    "Not detected (0): none.": "未检出（0）：无。",
    "PaDiff {version}, defaults": "PaDiff {version}，默认设置",
    "PaDiff {version}, tuned": "PaDiff {version}，调优",
    "reprod_log {version}": "reprod_log {version}",
    # recorded runs and trainings
    "False alarms: {alarms} of {correct} correct pairs.": "误报：{correct} 对正确的记录中有 {alarms} 对。",
    "False alarms: {alarms} of {correct}.": "误报：{correct} 次比较中有 {alarms} 次。",
    "By kind of mistake": "按错误的种类",
    "By frameworks": "按框架",
    "What is missed": "漏掉的",
    "**{name}**: {missed} ({places}). It says: {answer}": "**{name}**：{missed}（{places}）。它说：{answer}",
    "**False alarm**: {said}": "**误报**：{said}",
    (
        "**{name}** ({family}): it says {words}; right is step {step}, {phase}, {codes}"
    ): "**{name}**（{family}）：它说“{words}”；应为第 {step} 步，{phase}，{codes}",
    # the sweep
    "No correct pair was swept.": "没有扫描正确的模型对。",
    "False alarms, each with its first divergence:": "误报，各附首个差异：",
    "{processor}: {alarm}": "{processor}：{alarm}",
    (
        "Of {tensors} tensors of correct calls the largest score is **{largest}**, the 99.9th percentile {most}."
    ): "正确调用的 {tensors} 个张量中，最大得分为 **{largest}**，99.9 百分位数为 {most}。",
    (
        "Of {tensors} tensors of correct calls the largest score is **{largest}**, the 99.9th percentile {most}. "
        "The smallest of {planted} planted mistakes scores **{smallest}** ({mistake})."
    ): "正确调用的 {tensors} 个张量中，最大得分为 **{largest}**，99.9 百分位数为 {most}。"
    "{planted} 个植入的错误中，最小的得分为 **{smallest}**（{mistake}）。",
}

CELLS = {
    "": "",
    "tool": "工具",
    "detected": "检出",
    "told apart": "区分",
    "located": "定位",
    "named": "指明原因",
    "others blamed": "错怪其他层",
    "crashed": "崩溃",
    "false alarms": "误报",
    "crashed on correct": "在正确的上崩溃",
    "s / case": "秒 / 例",
    "cause": "原因",
    "faults": "错误数",
    "cost, median": "代价，中位数",
    "largest": "最大",
    "fault": "错误",
    "cost": "代价",
    "PaDiff {version}, defaults": "PaDiff {version}，默认设置",
    "PaDiff {version}, tuned": "PaDiff {version}，调优",
    "not run: {reason}": "未运行：{reason}",
    "{count:d} of {whole:d}": "{count} / {whole}",
    "{count:d} of {whole:d}, diverged": "{count} / {whole}，不一致",
    "recorded": "录制方式",
    "full": "完整张量",
    "sketch": "sketch",
    "pairs": "对数",
    "kind": "种类",
    "reference to port": "参考 → 移植",
    "torch to paddle": "torch → paddle",
    "torch to torch": "torch → torch",
    "paddle to paddle": "paddle → paddle",
    "family": "类别",
    "mistakes": "错误数",
    "all": "合计",
    "forward": "前向",
    "backward": "反向",
    "parameter": "参数",
    "settings": "设置",
    "weights": "权重",
    "data": "数据",
    "loss": "损失",
    "gradients": "梯度",
    "schedule": "学习率调度",
    "update": "更新",
    "buffers": "缓冲区",
    "logs": "日志",
    "ranks": "多进程",
    "crashes": "崩溃",
    "optimizer": "优化器",
    "clip": "裁剪",
    "accumulation": "累加",
    "regularisation": "正则化",
    "metric": "指标",
    "init": "初始化",
    "processor": "处理器",
    "runs": "运行数",
    "calls": "调用数",
    "tensors": "张量数",
    "median": "中位数",
    "99.9%": "99.9%",
    "mistakes found": "找到的错误",
    "smallest mistake": "最小的错误",
    "where the largest is": "最大值的位置",
    "{what} of {path}, {pair}, {processor}": "{path} 的{what}，{pair}，{processor}",
    "code between layers": "层之间的代码",
    "exactly equal": "完全相等",
    "pair": "模型对",
    "mistake": "错误",
    "guilty layer": "有错的层",
    "score": "得分",
    "right": "正确",
    "**nothing**": "**无**",
    "parameter gradients": "参数梯度",
    "whole model": "整个模型",
    "paired calls": "已配对的调用",
    "dtype": "数据类型",
    "forward / backward / gradients / whole, or the reason why not": "前向 / 反向 / 梯度 / 整个模型，或不能运行的原因",
    "the port cannot run: {reason}": "移植模型无法运行：{reason}",
    "paddle has no {kernel} kernel": "paddle 没有 {kernel} 内核",
    "{scores}, {count} alarms": "{scores}，{count} 次误报",
    "renamed": "改名",
    "reordered": "换次序",
    "nested": "换嵌套",
    "all three": "三者一起",
}
