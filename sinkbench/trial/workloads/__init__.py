"""The workloads of trials: drain, sustain, re-scale and fault."""
