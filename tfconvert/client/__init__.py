"""The client of the conversion service; docs/client.md teaches it."""

from __future__ import annotations

from tfconvert.client.client import AsyncClient, AsyncJob, Client, Job
from tfconvert.client.protocol import JobInfo, Patience

__all__ = ["AsyncClient", "AsyncJob", "Client", "Job", "JobInfo", "Patience"]
