"""Several ranks on one machine, by PaddlePaddle's own launcher and wrapper."""

from __future__ import annotations

from typing import Any

import paddle
import paddle.distributed


class Launching:
    """What ``LaunchingBackend`` asks for."""

    def launcher(self, ranks: int, logs: str) -> list[str]:
        command = ["-m", "paddle.distributed.launch", "--nproc_per_node", str(ranks), "--backend", "gloo"]
        return [*command, "--log_dir", logs]

    def join_ranks(self) -> None:
        paddle.set_device("cpu")
        paddle.distributed.init_parallel_env()

    def leave_ranks(self) -> None:
        """Nothing: the launcher ends what it began."""

    def data_parallel(self, model: Any) -> Any:
        return paddle.DataParallel(model)
