"""A bad network to put in front of any server: a proxy that does harm by plan or by hand.

```python
from towline_client import Client
from towline_client.testing.chaos import ChaosProxy, Faults

faults = Faults(cut=0.3, double=0.3, delay=0.1)
async with ChaosProxy("http://127.0.0.1:4747", seed=7, faults=faults) as proxy:
    async with Client(proxy.url, token) as client: ...
print(proxy.counts)
```

What is done to which request comes from the seed alone: the same requests in the same order meet
the same faults. Each fault can be asked for by hand, too: `cut`, `black_hole`, `refuse`, `portal`,
`bad_gateway`, `unauthorized`; `heal` ends them.
"""

from towline_client.testing.chaos.plan import Faults
from towline_client.testing.chaos.proxy import ChaosProxy

__all__ = ["ChaosProxy", "Faults"]
