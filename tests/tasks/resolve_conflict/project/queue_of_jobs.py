"""Jobs that wait, the most urgent first."""

import heapq
import itertools


class Waiting:
    """Jobs with a priority; the lower the number, the sooner."""

    def __init__(self, limit=100):
        self._heap = []
<<<<<<< HEAD
        self._count = itertools.count()
        self._limit = limit

    def put(self, job, priority=0):
        """Add a job; of the same priority the older one is first.

        Raises:
            OverflowError: Too many wait.
        """
        if len(self._heap) >= self._limit:
            raise OverflowError(f"{self._limit} jobs wait")
        heapq.heappush(self._heap, (priority, next(self._count), job))
=======
        self._gone = set()

    def put(self, job, priority=0):
        """Add a job."""
        heapq.heappush(self._heap, (priority, job))

    def cancel(self, job):
        """Take a job out again."""
        self._gone.add(job)
>>>>>>> cancel-jobs

    def get(self):
        """The next job; `None` when none waits."""
<<<<<<< HEAD
        return heapq.heappop(self._heap)[-1] if self._heap else None
=======
        while self._heap:
            _, job = heapq.heappop(self._heap)
            if job not in self._gone:
                return job
            self._gone.remove(job)
        return None
>>>>>>> cancel-jobs
