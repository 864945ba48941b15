"""The laboratory: every scheme of the papers and ours over one simulated path, with results as xarray.

>>> from segstream import lab
>>> lab.simulate("sstp", rtt="60ms", loss=1e-3, tolerance=(256, 1, 1), packets=100_000)   # doctest: +SKIP
>>> lab.sweep({"scheme": ["segstream", "tcp"], "loss": [1e-4, 1e-3]}, seeds=5)            # doctest: +SKIP
>>> lab.study("ec/fig11")                                                                 # doctest: +SKIP

Needs ``xarray``: ``pip install './bindings/python[lab]'`` from a clone of the repository.
"""

from ._scenario import scenario, schemes
from ._study import Claim, Picture, StudyResult, studies, study
from ._sweep import simulate, sweep

__all__ = ["Claim", "Picture", "StudyResult", "scenario", "schemes", "simulate", "studies", "study", "sweep"]
