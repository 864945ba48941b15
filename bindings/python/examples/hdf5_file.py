"""Writes the frames of a stream to an HDF5 file, and sends those of a file.

    python hdf5_file.py recv 127.0.0.1:9000 frames.h5
    python hdf5_file.py send 127.0.0.1:9000 FINGERPRINT frames.h5

The dataset ``frames`` grows with the stream; ``missing`` has, for each frame, the runs of missing units as pairs of first and
end, and ``verdict`` its verdict. What is missing is zero in ``frames``.
"""

from __future__ import annotations

import argparse

import h5py
import numpy as np
import segstream


def write(stream: segstream.StreamReceiver, path: str) -> int:
    """Writes the frames of a stream whose contract has a dtype and a shape; how many there were."""
    contract = stream.contract
    if contract.dtype is None or contract.shape is None or -1 in contract.shape:
        raise ValueError("the stream has no array of one shape: the sender gives dtype and shape in its contract")
    runs = h5py.vlen_dtype(np.dtype("u4"))
    count = 0
    with h5py.File(path, "w") as file:
        shape = contract.shape
        frames = file.create_dataset("frames", (0, *shape), contract.dtype, maxshape=(None, *shape), chunks=(1, *shape))
        missing = file.create_dataset("missing", (0,), runs, maxshape=(None,))
        verdict = file.create_dataset("verdict", (0,), h5py.string_dtype(), maxshape=(None,))
        for segment in stream:
            number = segment.segment
            if number >= len(frames):
                for dataset in (frames, missing, verdict):
                    dataset.resize(number + 1, axis=0)
            frames[number] = segment.array
            missing[number] = np.array([edge for hole in segment.holes for edge in (hole.start, hole.stop)], "u4")
            verdict[number] = segment.verdict
            count += 1
        frames.attrs["unit_bytes"] = contract.unit_bytes
    return count


def send(connection_to: str, fingerprint: str | None, path: str, tolerance: str = "reliable", **settings: bool) -> list[segstream.Judged]:
    """Sends the frames of a file; their verdicts."""
    with h5py.File(path, "r") as file:
        frames = file["frames"]
        contract = segstream.Contract(dtype=frames.dtype, shape=frames.shape[1:], tolerance=tolerance, label=path)
        with segstream.connect(connection_to, fingerprint, streams=[contract], **settings) as connection:
            sender = connection.senders[0]
            for number in range(len(frames)):
                sender.send(frames[number])
            sender.finish()
            return list(sender.verdicts())


def main() -> None:
    """Receives one connection, or sends one file."""
    parser = argparse.ArgumentParser(description="HDF5 files over Segstream.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    receiving, sending = verbs.add_parser("recv"), verbs.add_parser("send")
    receiving.add_argument("listen")
    receiving.add_argument("path")
    for name in ("to", "fingerprint", "path"):
        sending.add_argument(name)
    options = parser.parse_args()
    if options.verb == "send":
        for judged in send(options.to, options.fingerprint, options.path):
            print(judged)
        return
    with segstream.listen(options.listen, allow_anyone=True) as endpoint:
        print(f"listening on {endpoint.address}, fingerprint {endpoint.fingerprint}", flush=True)
        stream = endpoint.accept().accept_stream()
        if stream is not None:
            print(f"{write(stream, options.path)} frames")


if __name__ == "__main__":
    main()
