"""The page's own words in both languages, and the two forms of every sentence of a report."""

from __future__ import annotations

from typing import NamedTuple

from parfocal.locale import CHINESE, ENGLISH, catalogue
from parfocal.phrases import Phrase, translate


class Label(NamedTuple):
    """A text in English and in Chinese."""

    en: str
    zh: str

    @property
    def one(self) -> bool:
        """Whether it is the same in both: a name, a number, or not translated."""
        return self.en == self.zh


LABELS: dict[str, str] = {
    # the head
    "SAME": "一致",
    "DIFFERENT": "不一致",
    "as far as recorded": "就已记录的部分而言",
    "against": "对比",
    "reference": "参考模型",
    "port": "移植模型",
    "of": "共",
    ", ": "，",
    "allowed": "允许",
    "in eval mode": "eval 模式",
    "in train mode": "train 模式",
    "in keep mode": "保持原模式",
    "forward and backward": "前向和反向",
    "largest own error": "最大自身误差",
    "largest growth of an error": "误差的最大增长",
    "limit": "上限",
    "Not compared": "未比较",
    "tolerance": "容差",
    "outputs": "输出",
    # sections
    "Mistakes": "错误",
    "Models side by side": "两个模型对照",
    "Along the depth": "沿深度的误差",
    "Curves": "曲线",
    "Step by step": "逐步对照",
    "Weights": "权重",
    "Notes": "说明",
    "Jump to": "跳转",
    # a mistake
    "the noise": "噪声",
    "what went in": "输入误差",
    "cause": "原因",
    "no cause was found": "未找到原因",
    "proof": "证据",
    "with the cause removed the error is": "去除该原因后重新计算，误差为",
    "fix": "修复",
    "Copy": "复制",
    "Copied": "已复制",
    "Copy by hand: the text is selected": "已选中文本，请手动复制",
    "show in the models": "在模型中查看",
    "the same in": "同样出现在",
    "also possible": "也可能是",
    "further differences follow from these": "处差异由以上错误引起",
    "step": "步",
    "rank": "rank",
    "the model": "整个模型",
    # the rows
    "Search paths and kinds": "搜索路径或类型",
    "only divergences": "只看差异",
    "all kinds": "全部类型",
    "all phases": "全部阶段",
    "kind": "类型",
    "phase": "阶段",
    "forward": "前向",
    "backward": "反向",
    "only here": "仅此一侧",
    "not paired": "未配对",
    "fold": "折叠",
    "rows": "行",
    "nothing matches": "没有符合条件的行",
    "own error": "自身误差",
    "inherited": "传播所致",
    "within the noise": "在噪声之内",
    "unpaired": "未配对",
    "Arrow keys move, Enter opens a row, left and right fold.": "方向键移动，回车展开一行，左右键折叠。",
    # the details of a row
    "settings": "设置",
    "metrics": "度量",
    "called at": "调用位置",
    "paired by": "配对依据",
    "score": "分数",
    "relative error": "相对误差",
    "relative floor": "相对噪声下限",
    "differences here": "此处的差异",
    "tensor": "张量",
    "shape": "形状",
    "largest difference": "最大差异",
    "at": "位于",
    "the two values there": "该处的两个值",
    "root mean square": "均方根",
    "relative (L2)": "相对 (L2)",
    "cosine": "余弦",
    "noise (rms)": "噪声（均方根）",
    "differing elements": "不同的元素",
    "not finite on one side only": "仅一侧非有限",
    "Histogram of the difference": "差异直方图",
    "Where it sits": "差异的位置",
    "port - reference": "移植模型 − 参考模型",
    "elements": "元素数",
    "axis": "轴",
    "axes": "轴",
    "follows from another difference": "由其他差异引起",
    "no settings": "无设置",
    # plots
    "difference carried": "累积差异",
    "own error, relative": "自身误差（相对）",
    "beyond the limit": "超出上限",
    "floor": "噪声下限",
    "call": "调用",
    "relative": "相对值",
    "chaos horizon": "混沌界限",
    "update": "更新步",
    "epoch": "轮",
    "largest difference of the two curves": "两条曲线的最大差异",
    "none": "无",
    "Plots need a browser of 2023 or later.": "图表需要 2023 年或更新的浏览器。",
    "loss": "损失",
    "learning rate": "学习率",
    "loss, each side by itself": "损失（两侧各自训练）",
    # phases
    "weights": "权重",
    "gradient": "梯度",
    "optimizer": "优化器",
    "buffer": "缓冲区",
    "lr": "学习率",
    "data": "数据",
    "metric": "指标",
    "init": "初始化",
    "A mark is where a difference begins.": "标记处为差异开始的步。",
    # weights
    "copies": "次复制",
    "complete": "完整",
    "incomplete": "不完整",
    "the outputs agree on the inputs": "在给定输入上输出一致",
    "the outputs differ on the inputs": "在给定输入上输出不一致",
    "not verified by running": "未通过运行验证",
    "rule": "规则",
    "because": "依据",
    "without a counterpart": "没有对应",
    "without a part in the run": "未参与运行",
    "ambiguous": "有歧义",
    "presumed": "推定",
    # foot
    "All of it is in this file; nothing is loaded from the network.": "内容全部在此文件中，不从网络加载。",
}


def say(text: str) -> Label:
    """A sentence of the report, or a word of the page, in both languages."""
    if isinstance(text, Phrase):
        return Label(translate(text, ENGLISH), translate(text, CHINESE))
    return Label(text, LABELS.get(text) or catalogue(CHINESE).get(text, text))
