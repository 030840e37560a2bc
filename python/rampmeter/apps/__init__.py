"""Applications over simulated transports, as cosy's paper measures them (section 6).

Each module is a model of one application: pure functions from columns of finished runs.

* `detector`: a detector of crashed hosts (section 6.3)
* `storage`: a storage client that sleeps until the bound of its responses (section 6.1)
* `reframer`: a receiver that batches the packets of one flow (section 6.2)
* `capture`: packets as they arrive at a host, which it reads
"""
