"""Writes the frames of a stream to a Zarr v3 store: an array of frames, and one that says what is missing.

    python zarr_store.py 127.0.0.1:9000 frames.zarr --frames 100

``frames[n]`` is frame n, zero where units are missing; ``missing[n]`` is true there, so that
``numpy.ma.MaskedArray(frames[n], missing[n])`` is the frame as it was received. ``verdict[n]`` is 0 (complete), 1 (within
tolerance) or 2 (expired).
"""

from __future__ import annotations

import argparse

import segstream
import zarr

VERDICTS = {"complete": 0, "within_tolerance": 1, "expired": 2}


def write(stream: segstream.StreamReceiver, path: str, frames: int) -> int:
    """Writes at most ``frames`` frames of a stream whose contract has a dtype and a shape; how many there were."""
    contract = stream.contract
    if contract.dtype is None or contract.shape is None or -1 in contract.shape:
        raise ValueError("the stream has no array of one shape: the sender gives dtype and shape in its contract")
    group = zarr.create_group(path, zarr_format=3, overwrite=True, attributes={"label": contract.label})
    shape, chunks = (frames, *contract.shape), (1, *contract.shape)
    array = group.create_array("frames", shape=shape, chunks=chunks, dtype=contract.dtype)
    missing = group.create_array("missing", shape=shape, chunks=chunks, dtype="bool")
    verdict = group.create_array("verdict", shape=(frames,), dtype="uint8", fill_value=255)
    count = 0
    for segment in stream:
        number = segment.segment
        if number < frames:
            array[number] = segment.array
            # What is not written reads as false.
            if segment.missing:
                missing[number] = segment.mask
            verdict[number] = VERDICTS[segment.verdict]
            count += 1
    return count


def main() -> None:
    """Receives one connection."""
    parser = argparse.ArgumentParser(description="Writes a stream of frames to a Zarr store.")
    parser.add_argument("listen")
    parser.add_argument("path")
    parser.add_argument("--frames", type=int, required=True)
    options = parser.parse_args()
    with segstream.listen(options.listen, allow_anyone=True) as endpoint:
        print(f"listening on {endpoint.address}, fingerprint {endpoint.fingerprint}", flush=True)
        stream = endpoint.accept().accept_stream()
        if stream is not None:
            print(f"{write(stream, options.path, options.frames)} frames")


if __name__ == "__main__":
    main()
