"""Applications over simulated transports, as cosy's paper measures them (section 6).

Each module is a model of one application: pure functions from columns of finished runs.

* `detector`: a detector of crashed hosts (section 6.3)
* `storage`: a storage client that sleeps until responses must be there (section 6.1)
"""
