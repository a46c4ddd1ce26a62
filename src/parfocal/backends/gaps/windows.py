"""Differences of convolutions, pools, resizing and padding."""

from __future__ import annotations

from parfocal.backends.gaps.entry import Family, Gap, Status, Symptom, Wording, ranked

_MAX_POOLS = (
    (*ranked("torch.nn.MaxPool{}d"), *ranked("torch.nn.functional.max_pool{}d")),
    (*ranked("paddle.nn.MaxPool{}D"), *ranked("paddle.nn.functional.max_pool{}d")),
)
_RESIZING = (
    ("torch.nn.functional.interpolate", "torch.nn.Upsample"),
    ("paddle.nn.functional.interpolate", "paddle.nn.Upsample"),
)

GAPS: tuple[Gap, ...] = (
    Gap(
        "average-pool-padding",
        Family.WINDOWS,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        (*ranked("torch.nn.AvgPool{}d"), *ranked("torch.nn.functional.avg_pool{}d")),
        (*ranked("paddle.nn.AvgPool{}D"), *ranked("paddle.nn.functional.avg_pool{}d")),
        Wording(
            "An average counts the padding or does not",
            "count_include_pad=True: padding counts in the divisor.",
            "exclusive=True: padding does not count.",
            "The outputs differ at the borders only.",
            "Pass exclusive=False.",
        ),
    ),
    Gap(
        "max-pool-ceil-mode",
        Family.WINDOWS,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        *_MAX_POOLS,
        Wording(
            "ceil_mode with padding keeps one window more",
            "A window that would start inside the padding at the end is dropped.",
            "That window is kept.",
            "For five pixels, kernel 2, stride 2 and padding 1 the output has 3 values in torch and 4 in"
            " paddle.",
            "Cut off the last window, or pass ceil_mode=False and pad by hand.",
        ),
    ),
    Gap(
        "max-pool-dilation",
        Family.WINDOWS,
        Status.VERIFIED,
        (Symptom.ERROR,),
        *_MAX_POOLS,
        Wording(
            "A max pool cannot be dilated",
            "dilation spreads the window.",
            "There is no argument dilation; passing it raises TypeError.",
            "Building the layer or calling the function raises.",
            "Take the windows with paddle.nn.functional.unfold, which has dilations, and their maximum.",
        ),
    ),
    Gap(
        "max-pool-positions",
        Family.WINDOWS,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        *_MAX_POOLS,
        Wording(
            "The fourth argument of a max pool is another one",
            "After kernel, stride and padding comes dilation.",
            "After kernel, stride and padding comes return_mask.",
            "The port returns a pair of tensors.",
            "Pass everything after the kernel by keyword.",
        ),
    ),
    Gap(
        "average-pool-positions",
        Family.WINDOWS,
        Status.READ,
        (Symptom.FORWARD,),
        ("torch.nn.AvgPool1d",),
        ("paddle.nn.AvgPool1D",),
        Wording(
            "AvgPool1D exchanges its last two arguments",
            "After padding come ceil_mode and count_include_pad.",
            "After padding come exclusive and ceil_mode; AvgPool2D and AvgPool3D have ceil_mode first.",
            "A value given by position becomes the other setting.",
            "Pass everything after the kernel by keyword.",
        ),
    ),
    Gap(
        "pool-index-dtype",
        Family.WINDOWS,
        Status.VERIFIED,
        (Symptom.METRIC,),
        *_MAX_POOLS,
        Wording(
            "The indices of a max pool have another dtype",
            "return_indices=True gives int64.",
            "return_mask=True gives int32.",
            "Comparing or adding indices meets two dtypes.",
            'Cast with .astype("int64").',
        ),
    ),
    Gap(
        "transposed-convolution-positions",
        Family.WINDOWS,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ranked("torch.nn.ConvTranspose{}d"),
        ranked("paddle.nn.Conv{}DTranspose"),
        Wording(
            "The seventh argument of a transposed convolution is another one",
            "After output_padding come groups, bias and dilation.",
            "Of Conv2DTranspose and Conv3DTranspose dilation comes after output_padding, and then groups.",
            "A number of groups becomes a dilation. The weights have the same layout.",
            "Pass everything after the kernel by keyword.",
        ),
    ),
    Gap(
        "same-padding-with-stride",
        Family.WINDOWS,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ranked("torch.nn.Conv{}d"),
        ranked("paddle.nn.Conv{}D"),
        Wording(
            "padding='same' with a stride is allowed on one side",
            "padding='same' with a stride above 1 raises ValueError.",
            "padding='same' with a stride is allowed.",
            "A port written from paper or from another framework has no reference in torch.",
            "Pad by hand in torch, with the amounts that paddle adds.",
        ),
    ),
    Gap(
        "interpolate-align-mode",
        Family.WINDOWS,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        *_RESIZING,
        Wording(
            "Only align_mode=0 samples as torch does",
            "Bilinear resizing takes pixel centres.",
            "align_mode=0, the default, takes pixel centres; align_mode=1 takes pixel corners.",
            "With align_mode=1 all resized values differ.",
            "Leave align_mode at 0.",
        ),
    ),
    Gap(
        "interpolate-arguments",
        Family.WINDOWS,
        Status.VERIFIED,
        (Symptom.ERROR,),
        *_RESIZING,
        Wording(
            "Three forms of interpolate are refused",
            "size may be one number, mode='area' takes a scale_factor, and a 1-D signal can be resized by"
            " 'nearest'.",
            "All three raise.",
            "The call raises.",
            "Pass size as a list, give mode='area' an explicit size, and add an axis to a 1-D signal.",
        ),
    ),
    Gap(
        "grid-sample-align-corners",
        Family.WINDOWS,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ("torch.nn.functional.grid_sample",),
        ("paddle.nn.functional.grid_sample",),
        Wording(
            "grid_sample aligns corners by default",
            "align_corners is None by default, which means False.",
            "align_corners is True by default.",
            "All sampled values are moved a little.",
            "Pass align_corners explicitly.",
        ),
    ),
    Gap(
        "grid-sample-bicubic",
        Family.WINDOWS,
        Status.VERIFIED,
        (Symptom.ERROR,),
        ("torch.nn.functional.grid_sample",),
        ("paddle.nn.functional.grid_sample",),
        Wording(
            "grid_sample has no bicubic mode",
            "mode='bicubic' is allowed.",
            "mode='bicubic' raises ValueError.",
            "The call raises.",
            "There is no one-line replacement: gather the sixteen neighbours and weigh them yourself.",
        ),
    ),
    Gap(
        "affine-grid-align-corners",
        Family.WINDOWS,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ("torch.nn.functional.affine_grid",),
        ("paddle.nn.functional.affine_grid",),
        Wording(
            "affine_grid aligns corners by default",
            "align_corners is None by default, which means False.",
            "align_corners is True by default.",
            "The whole grid is stretched.",
            "Pass align_corners explicitly.",
        ),
    ),
    Gap(
        "pad-order",
        Family.WINDOWS,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ("torch.nn.functional.pad",),
        ("paddle.nn.functional.pad",),
        Wording(
            "pad starts from the other end when it has two numbers for every axis",
            "The numbers always begin with the last axis.",
            "With two numbers for every axis the first axis comes first (pad_from_left_axis=True);"
            " with fewer the last axis does.",
            "The shape differs, or the wrong borders are padded.",
            "Pass pad_from_left_axis=False, or use paddle.compat.nn.functional.pad.",
        ),
    ),
)
