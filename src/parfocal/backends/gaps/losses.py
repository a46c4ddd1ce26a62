"""Differences of losses."""

from __future__ import annotations

from parfocal.backends.gaps.entry import Family, Gap, Status, Symptom, Wording

_TORCH = ("torch.nn.CrossEntropyLoss", "torch.nn.functional.cross_entropy")
_PADDLE = ("paddle.nn.CrossEntropyLoss", "paddle.nn.functional.cross_entropy")

GAPS: tuple[Gap, ...] = (
    Gap(
        "cross-entropy-ignored-mean",
        Family.LOSSES,
        Status.VERIFIED,
        (Symptom.FORWARD, Symptom.BACKWARD),
        _TORCH,
        _PADDLE,
        Wording(
            "The mean of a cross entropy counts ignored labels",
            "The mean is over the labels that are not ignored.",
            "With ignore_index=-100, the default, the mean is over all labels; it is right only for an"
            " ignore_index that is not negative.",
            "The loss is smaller by exactly the share of labels that count.",
            'Pass reduction="sum" and divide by the number of labels that count.',
        ),
    ),
    Gap(
        "cross-entropy-all-ignored",
        Family.LOSSES,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        _TORCH,
        _PADDLE,
        Wording(
            "A batch with only ignored labels",
            "The mean is NaN.",
            "The mean is 0.",
            "The reference shows NaN where the port shows 0.",
            "Skip batches in which no label counts.",
        ),
    ),
    Gap(
        "cross-entropy-class-axis",
        Family.LOSSES,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        _TORCH,
        _PADDLE,
        Wording(
            "The classes lie on another axis",
            "The classes are axis 1.",
            "The classes are the last axis by default.",
            "The call raises, or gives a wrong value without an error where both axes have the same size.",
            "Pass axis=1.",
        ),
    ),
    Gap(
        "cross-entropy-soft-labels",
        Family.LOSSES,
        Status.VERIFIED,
        (Symptom.ERROR,),
        _TORCH,
        _PADDLE,
        Wording(
            "Probabilities as targets need a flag",
            "Floating-point targets of the shape of the input are taken for probabilities.",
            "soft_label=True is needed.",
            "The call raises.",
            "Pass soft_label=True.",
        ),
    ),
    Gap(
        "cross-entropy-soft-labels-weight",
        Family.LOSSES,
        Status.VERIFIED,
        (Symptom.FORWARD, Symptom.BACKWARD),
        _TORCH,
        _PADDLE,
        Wording(
            "Class weights with probabilities as targets mean something else",
            "Every class of a sample is weighted by its own weight, and the mean divides by the number of"
            " samples.",
            "The weights are combined with the probabilities in another way.",
            "The values differ whenever weight and soft labels are used together.",
            "Write the sum out: -(target * weight * log_softmax(x)).sum(axis).mean().",
        ),
    ),
    Gap(
        "cross-entropy-smoothing-weight",
        Family.LOSSES,
        Status.VERIFIED,
        (Symptom.FORWARD, Symptom.BACKWARD),
        _TORCH,
        _PADDLE,
        Wording(
            "Class weights with label smoothing mean something else",
            "The smoothed part is weighted class by class.",
            "The smoothed targets are treated as soft labels, with other weights.",
            "The values differ whenever weight and label_smoothing are used together.",
            "Write the two parts out with log_softmax.",
        ),
    ),
    Gap(
        "cross-entropy-smoothing-ignored",
        Family.LOSSES,
        Status.VERIFIED,
        (Symptom.ERROR,),
        _TORCH,
        _PADDLE,
        Wording(
            "Label smoothing does not go with ignored labels",
            "label_smoothing and ignore_index work together.",
            "A label of -100 raises, because it cannot be made one-hot.",
            "The call raises.",
            "Select the samples that count first.",
        ),
    ),
    Gap(
        "cross-entropy-label-shape",
        Family.LOSSES,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        _TORCH,
        _PADDLE,
        Wording(
            "Labels may have another dtype and one axis more",
            "Labels are int64 of the shape [N].",
            "Labels may be int32, and labels [N, 1] give an unreduced loss [N, 1].",
            "An unreduced loss has one axis more, and broadcasts in what follows.",
            "Squeeze the labels.",
        ),
    ),
    Gap(
        "smooth-l1-huber",
        Family.LOSSES,
        Status.VERIFIED,
        (Symptom.FORWARD, Symptom.BACKWARD),
        ("torch.nn.SmoothL1Loss", "torch.nn.functional.smooth_l1_loss", "torch.nn.HuberLoss"),
        ("paddle.nn.SmoothL1Loss", "paddle.nn.functional.smooth_l1_loss"),
        Wording(
            "SmoothL1Loss computes the Huber loss",
            "SmoothL1Loss(beta) divides the square by beta; HuberLoss(delta) does not.",
            "SmoothL1Loss(delta) is the Huber loss by default.",
            "The two are equal only for beta = 1; otherwise their ratio is beta.",
            "Pass is_huber=False for SmoothL1Loss; leave it at True for HuberLoss.",
        ),
    ),
    Gap(
        "ctc-input",
        Family.LOSSES,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ("torch.nn.CTCLoss", "torch.nn.functional.ctc_loss"),
        ("paddle.nn.CTCLoss", "paddle.nn.functional.ctc_loss"),
        Wording(
            "CTCLoss takes logits",
            "The input is log probabilities.",
            "The input is logits: log_softmax is applied inside.",
            "Log probabilities give the same value, because log_softmax leaves them as they are;"
            " probabilities do not.",
            "Drop the log_softmax before the loss, or keep it.",
        ),
    ),
)
