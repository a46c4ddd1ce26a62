"""What a model did: a tree of calls with their outputs and the gradients of their inputs."""

from parfocal.compat.padiff.report.recording import record_call
from parfocal.compat.padiff.report.report import KeptTensor, Report, ReportItem, ReportNode

__all__ = ["KeptTensor", "Report", "ReportItem", "ReportNode", "record_call"]
