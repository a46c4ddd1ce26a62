"""Several ranks on one machine, by PyTorch's own launcher and wrapper."""

from __future__ import annotations

from typing import Any

import torch.distributed
from torch.nn.parallel import DistributedDataParallel


class Launching:
    """What ``LaunchingBackend`` asks for."""

    def launcher(self, ranks: int, logs: str) -> list[str]:
        return ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks)]

    def join_ranks(self) -> None:
        torch.distributed.init_process_group("gloo")

    def leave_ranks(self) -> None:
        torch.distributed.destroy_process_group()

    def data_parallel(self, model: Any) -> Any:
        return DistributedDataParallel(model)
