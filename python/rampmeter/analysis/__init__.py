"""Statistics of samples, and the theory behind settings of transports."""
