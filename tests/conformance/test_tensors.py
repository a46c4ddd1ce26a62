from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from parfocal.errors import InputError, UnsupportedError

COMMON = {
    *("bool", "int8", "int16", "int32", "int64", "uint8"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
}


def numpy_dtype(name):
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def sample(name, shape):
    values = np.arange(int(np.prod(shape))).reshape(shape) % 5
    array = values.astype("complex64" if name.startswith("complex") else "float32")
    if name.startswith("complex"):
        array = array * (1 - 2j)
    return array.astype(numpy_dtype(name))


def test_every_common_dtype_is_there(backend):
    assert backend.dtypes >= COMMON


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3), (2, 1, 4)])
def test_arrays_survive_the_round_trip(backend, shape):
    for name in sorted(backend.dtypes):
        array = sample(name, shape)
        tensor = backend.from_array(array)
        assert backend.is_tensor(tensor)
        assert (backend.dtype(tensor), backend.shape(tensor)) == (name, shape)
        back = backend.to_array(tensor)
        assert (back.dtype, back.shape) == (array.dtype, shape)
        assert back.tobytes() == array.tobytes()


def test_from_array_owns_its_memory_and_to_array_copies(backend):
    array = np.ones((2, 2), "float32")
    tensor = backend.from_array(array)
    array[:] = 5
    copy = backend.to_array(tensor)
    assert (copy == 1).all()
    copy[:] = 7
    assert (backend.to_array(tensor) == 1).all()


def test_without_copy_sees_later_writes(backend):
    tensor = backend.from_array(np.ones((2, 2), "float32"))
    view = backend.to_array(tensor, copy=False)
    backend.write(tensor, np.full((2, 2), 3, "float32"))
    assert (view == 3).all()


def test_odd_arrays_come_in(backend):
    base = np.arange(12, dtype="float32").reshape(3, 4)
    read_only = base.copy()
    read_only.flags.writeable = False
    for array in (base[::-1, ::2], base.T, base.astype(">f4"), read_only, np.asfortranarray(base)):
        assert (backend.to_array(backend.from_array(array)) == array).all()


def test_strided_views_come_out(kit, backend):
    tensor = kit.tensor(np.arange(12).reshape(3, 4))
    expected = np.arange(12, dtype="float32").reshape(3, 4)
    assert (backend.to_array(tensor[:, 1:3]) == expected[:, 1:3]).all()
    assert (backend.to_array(tensor.T) == expected.T).all()
    half = backend.cast(tensor, "bfloat16").T
    assert (backend.to_array(half).astype("float32") == expected.T).all()


def test_an_array_is_detached_from_autograd(kit, backend):
    tensor = kit.tensor([1.0, 2.0], grad=True)
    assert backend.requires_grad(tensor)
    assert backend.is_leaf(tensor)
    doubled = tensor * 2.0
    assert not backend.is_leaf(doubled)
    assert backend.to_array(doubled).tolist() == [2.0, 4.0]


def test_cast_stays_in_the_graph(kit, backend):
    tensor = kit.tensor([1.0, 2.0], grad=True)
    wide = backend.cast(tensor, "float64")
    assert backend.dtype(wide) == "float64"
    backend.backward([(wide * 3.0).sum()], [None])
    assert backend.gradient(tensor).tolist() == [3.0, 3.0]


def test_unknown_dtypes_are_refused(kit, backend):
    with pytest.raises(UnsupportedError, match="has no dtype"):
        backend.from_array(np.array(["a"]))
    with pytest.raises(UnsupportedError, match="has no dtype float3"):
        backend.cast(kit.tensor([1.0]), "float3")


def test_bits_of_unsigned_integers_never_turn_into_floats(backend):
    array = np.array([1, 2], "uint16")
    if "uint16" in backend.dtypes:
        assert backend.to_array(backend.from_array(array)).dtype == np.uint16
    else:
        with pytest.raises(UnsupportedError, match="has no dtype uint16"):
            backend.from_array(array)


def test_write_keeps_identity_sharing_and_gradients(kit, backend):
    model = kit.linear(3, 3)
    model.other = model.weight
    pointer = model.weight.data_ptr()
    backend.write(model.weight, np.full((3, 3), 2.5, "float32"))
    assert model.weight is model.other
    assert model.weight.data_ptr() == pointer
    assert backend.requires_grad(model.weight)
    assert backend.is_leaf(model.weight)
    assert (backend.to_array(model.other) == 2.5).all()


def test_write_reaches_through_views(kit, backend):
    base = kit.tensor(np.zeros((3, 4)))
    backend.write(base[:, 1:3], np.full((3, 2), 4, "float32"))
    backend.write(base.T[0:1], np.full((1, 3), 9, "float32"))
    assert backend.to_array(base).tolist() == [[9, 4, 4, 0]] * 3


def test_write_between_forward_and_backward_is_outside_autograd(kit, backend):
    model = kit.fill(kit.linear(2, 2))
    loss = model(kit.tensor([[1.0, 2.0]], grad=True)).sum()
    values = backend.to_array(model.weight)
    backend.write(model.weight, values * 0)
    backend.write(model.weight, values)
    backend.backward([loss], [None])
    assert backend.gradient(model.weight) is not None


def test_write_takes_every_dtype(backend):
    for name in sorted(backend.dtypes):
        array = sample(name, (2, 3))
        tensor = backend.from_array(np.zeros_like(array))
        backend.write(tensor, array)
        assert backend.to_array(tensor).tobytes() == array.tobytes(), name


def test_write_wants_the_exact_shape_and_dtype(kit, backend):
    tensor = kit.tensor(np.ones((2, 3)))
    with pytest.raises(InputError, match=r"array of shape \(3,\) into a tensor of shape \(2, 3\)"):
        backend.write(tensor, np.ones(3, "float32"))
    with pytest.raises(InputError, match="array of dtype float64 into a tensor of dtype float32"):
        backend.write(tensor, np.ones((2, 3)))
    assert (backend.to_array(tensor) == 1).all()


def test_sparse_tensors_are_refused(kit, backend):
    kit.need("sparse tensors")
    if kit.name == "torch":
        sparse = kit.torch.eye(2).to_sparse()
    else:
        sparse = kit.paddle.eye(2).to_sparse_coo(2)
    with pytest.raises(UnsupportedError, match=r"tensor of shape \(2, 2\) has no plain array"):
        backend.to_array(sparse)


def test_device_has_one_spelling(kit, backend):
    assert backend.device(kit.tensor([1.0])) == "cpu"


def test_conjugate_and_negative_views_of_torch():
    import torch

    from parfocal.backends import registry

    backend = registry.get("torch")
    base = torch.tensor([1 + 2j, 3 - 1j])
    conjugate = base.conj()
    assert conjugate.is_conj()
    assert backend.to_array(conjugate).tolist() == [1 - 2j, 3 + 1j]
    negative = conjugate.imag
    assert negative.is_neg()
    assert backend.to_array(negative).tolist() == [-2.0, 1.0]
    backend.write(conjugate, np.array([5 + 1j, 0], "complex64"))
    assert base.tolist() == [5 - 1j, 0]


def test_a_gradient_that_was_switched_off_is_switched_on_again(kit, backend):
    x = kit.tensor([1.0, 2.0])
    assert not backend.requires_grad(x)
    backend.require_grad(x)
    assert backend.requires_grad(x)
    backend.backward([(x * 3.0).sum()], [None])
    assert backend.gradient(x).tolist() == [3.0, 3.0]
