"""What the commands print."""

from __future__ import annotations

TEXTS = {
    "cannot print the result: {error}": "无法输出结果：{error}",
    "{test}: {marker}: write seeds=N, with N a whole number from 1 on": "{test}：{marker}：请写 seeds=N，N 为不小于 1 的整数",
    "\n\nthe whole report: {page}": "\n\n完整报告：{page}",
    # progress
    "starting": "正在启动",
    "the reference runs under watch": "正在观测参考模型的运行",
    "the port runs by itself": "移植模型独立运行",
    "pairing calls; the port runs along the reference's values": "正在配对调用；移植模型以参考模型的值运行",
    "measuring noise": "正在测量噪声",
    "judging and explaining": "正在判定并查找原因",
    "step {step} of {steps}": "第 {step} 步，共 {steps} 步",
    # diff
    "name": "名称",
    "largest difference": "最大差异",
    "same": "一致",
    "different": "不一致",
    "DIFFERS": "不一致",
    "... and {count} more rows (--limit 0 shows all)": "…… 还有 {count} 行（--limit 0 显示全部）",
    "{count} compared, {failed} above {threshold}": "比较了 {count} 项，{failed} 项超过 {threshold}",
    "{difference} at [{place}]: {first} vs {second}": "{difference}，位于 [{place}]：{first} 对 {second}",
    "NaN or infinity on one side only at {count} places": "{count} 处仅一侧为 NaN 或无穷",
    "NaN or infinity on both sides at 1 place": "1 处两侧均为 NaN 或无穷",
    "NaN or infinity on both sides at {count} places": "{count} 处两侧均为 NaN 或无穷",
    "shapes {first} and {second} differ by axes of length 1 only: compared by value": "形状 {first} 与 {second} 仅相差长度为 1 的轴：按值比较",
    "missing in the first": "第一个中缺失",
    "missing in the second": "第二个中缺失",
    "not numbers: {first} and {second}": "不是数值：{first} 与 {second}",
    "shapes differ: {first} against {second}": "形状不同：{first} 对 {second}",
    # other commands
    "written to {out}": "已写入 {out}",
    "{path} was there already and is left as it was": "{path} 已存在，未改动",
    "wrote {path}: it fails until the fix is made": "已写出 {path}：修复之前它会失败",
    "no script: {error}": "没有脚本：{error}",
    "hint: {hint}": "提示：{hint}",
    "a mistake of parfocal's own; please report it with the lines above": "parfocal 自身的错误；请附上以上内容报告",
}
