"""Differences of recurrent layers, attention and embeddings."""

from __future__ import annotations

from parfocal.backends.gaps.entry import Family, Gap, Status, Symptom, Wording

_RECURRENT = (
    ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN"),
    ("paddle.nn.LSTM", "paddle.nn.GRU", "paddle.nn.SimpleRNN"),
)

GAPS: tuple[Gap, ...] = (
    Gap(
        "recurrent-layout",
        Family.SEQUENCES,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        *_RECURRENT,
        Wording(
            "Recurrent layers take the batch first",
            "The time is the first axis unless batch_first=True; bidirectional=True runs both ways.",
            "The batch is the first axis unless time_major=True; direction='bidirect' runs both ways.",
            "Batch and time are exchanged without an error.",
            "Pass time_major = not batch_first, or transpose the input.",
        ),
    ),
    Gap(
        "lstm-cell-return",
        Family.SEQUENCES,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ("torch.nn.LSTMCell",),
        ("paddle.nn.LSTMCell",),
        Wording(
            "LSTMCell returns one thing more",
            "A call returns (h, c).",
            "A call returns (h, (h, c)).",
            "Unpacking two values gives h and a pair.",
            "Write _, (h, c) = cell(x, (h, c)).",
        ),
    ),
    Gap(
        "packed-sequences",
        Family.SEQUENCES,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ("torch.nn.utils.rnn.pack_padded_sequence", *_RECURRENT[0]),
        _RECURRENT[1],
        Wording(
            "There are no packed sequences",
            "pack_padded_sequence packs sequences of several lengths.",
            "The call of the layer takes sequence_length.",
            "Without it the padding is run through too, and the last states differ.",
            "Pass sequence_length=lengths to the call.",
        ),
        absent=("torch.nn.utils.rnn.pack_padded_sequence",),
    ),
    Gap(
        "attention-return",
        Family.SEQUENCES,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ("torch.nn.MultiheadAttention",),
        ("paddle.nn.MultiHeadAttention",),
        Wording(
            "Attention returns the output alone",
            "A call returns the output and the attention weights.",
            "A call returns the output; need_weights=True adds the weights.",
            "Unpacking the result raises or takes the output apart.",
            "Take the output as it is.",
        ),
    ),
    Gap(
        "attention-boolean-mask",
        Family.SEQUENCES,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ("torch.nn.MultiheadAttention", "torch.nn.TransformerEncoderLayer"),
        ("paddle.nn.MultiHeadAttention", "paddle.nn.TransformerEncoderLayer"),
        Wording(
            "A boolean mask means the opposite",
            "True marks what is masked out.",
            "True marks what is kept.",
            "All attention goes to the wrong places.",
            "Invert the mask: ~mask.",
        ),
    ),
    Gap(
        "attention-function-layout",
        Family.SEQUENCES,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ("torch.nn.functional.scaled_dot_product_attention",),
        (
            "paddle.nn.functional.scaled_dot_product_attention",
            "paddle.compat.nn.functional.scaled_dot_product_attention",
        ),
        Wording(
            "The attention function takes heads on another axis",
            "The layout is [batch, heads, length, features].",
            "The layout is [batch, length, heads, features].",
            "The call runs and attends along the heads.",
            "Transpose the axes 1 and 2, or use paddle.compat.nn.functional.scaled_dot_product_attention.",
        ),
    ),
    Gap(
        "transformer-layer-defaults",
        Family.SEQUENCES,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ("torch.nn.TransformerEncoderLayer", "torch.nn.TransformerDecoderLayer"),
        ("paddle.nn.TransformerEncoderLayer", "paddle.nn.TransformerDecoderLayer"),
        Wording(
            "Transformer layers have other defaults and names",
            "batch_first is False by default, dim_feedforward is 2048, and norm_first puts norms first.",
            "The batch is always first, dim_feedforward must be given, and the name is normalize_before.",
            "Batch and time are exchanged, or norms come in another place.",
            "Pass dim_feedforward and normalize_before = norm_first, and give the batch first.",
        ),
    ),
    Gap(
        "embedding-padding-row",
        Family.SEQUENCES,
        Status.VERIFIED,
        (Symptom.FORWARD,),
        ("torch.nn.Embedding", "torch.nn.functional.embedding"),
        ("paddle.nn.Embedding", "paddle.nn.functional.embedding"),
        Wording(
            "The padding row of an Embedding gives zeros",
            "The row at padding_idx is used as it is stored; it only gets no gradient.",
            "The output at padding_idx is always 0, whatever weights were loaded.",
            "Outputs differ at padding tokens if the stored row is not 0.",
            "Set the row to 0 in the reference, or leave padding_idx out of the port.",
        ),
    ),
)
