"""Segments as numpy arrays. Called by the extension module; the memory stays the segment's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

if TYPE_CHECKING:
    from ._native import Segment

#: The kinds of numpy that travel: booleans, integers, floats, complex numbers.
_KINDS = "biufc"


def dtype_text(dtype: DTypeLike) -> str:
    """A dtype as it travels, such as ``<f4``."""
    found = np.dtype(dtype)
    if found.kind not in _KINDS or found.names is not None or found.subdtype is not None:
        raise TypeError(
            f"arrays of dtype {found!r} do not travel; give booleans, integers, floats or complex numbers, "
            "or view the array as bytes: a.view('u1')"
        )
    return found.str


def _layout(segment: Segment) -> tuple[np.dtype[Any], tuple[int, ...]]:
    if segment.dtype is None:
        return np.dtype(np.uint8), (-1,)
    return np.dtype(segment.dtype), segment.shape or (-1,)


def array_of(segment: Segment) -> NDArray[Any]:
    """The segment as an array without a copy."""
    dtype, shape = _layout(segment)
    if segment.nbytes == 0 and segment.missing and -1 not in shape:
        # Nothing of the segment was ever sent.
        return np.zeros(shape, dtype)
    try:
        return np.frombuffer(memoryview(segment), dtype).reshape(shape) if segment.nbytes else np.zeros(0, dtype).reshape(shape)
    except ValueError:
        raise ValueError(
            f"segment {segment.segment} has {segment.nbytes} bytes and is no array of dtype {dtype.str} and shape {shape}"
            f" (verdict: {segment.verdict}); bytes(segment) has what arrived"
        ) from None


def array_as(segment: Segment, dtype: DTypeLike | None, copy: bool | None) -> NDArray[Any]:
    """What ``numpy.asarray`` and ``numpy.array`` ask for."""
    array = array_of(segment)
    wanted = array.dtype if dtype is None else np.dtype(dtype)
    if wanted != array.dtype:
        if copy is False:
            raise ValueError(f"the segment has dtype {array.dtype}; as {wanted} it must be copied")
        return array.astype(wanted)
    return array.copy() if copy else array


def unit_mask_of(segment: Segment) -> NDArray[np.bool_]:
    """For each unit whether it is missing."""
    mask = np.zeros(segment.units, np.bool_)
    for hole in segment.holes:
        mask[hole.start : hole.stop] = True
    return mask


def mask_of(segment: Segment) -> NDArray[np.bool_]:
    """For each element of the array whether any of its bytes is missing."""
    array = array_of(segment)
    mask = np.zeros(array.size, np.bool_)
    item_bytes, unit_bytes = array.dtype.itemsize, segment.unit_bytes
    for hole in segment.holes:
        first, end = hole.start * unit_bytes, hole.stop * unit_bytes
        mask[first // item_bytes : -(-end // item_bytes)] = True
    return mask.reshape(array.shape)


def masked_of(segment: Segment) -> np.ma.MaskedArray[Any, Any]:
    """The segment as a masked array over the same memory: what is missing is masked."""
    array = array_of(segment)
    mask = mask_of(segment) if segment.missing else np.ma.nomask
    masked: np.ma.MaskedArray[Any, Any] = np.ma.MaskedArray(array, mask=mask, copy=False)
    return masked
