"""`skn serve`: a model that answers and learns over HTTP, and forgets nothing that it acknowledged.

`http` speaks the protocol and knows nothing of models; `api` is the door: what may be asked, and in which form;
`bodies` makes records of request bodies; `engine` owns the model; `log` keeps what was learned on the disk before
it is acknowledged; `state` is the directory from which all of it begins again; `keeper` looks after it.
"""
