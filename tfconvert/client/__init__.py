"""The client of the conversion service; docs/client.md teaches it."""

from __future__ import annotations

from tfconvert.client.async_client import AsyncClient, AsyncJob
from tfconvert.client.client import Client, Job
from tfconvert.client.job_info import JobInfo
from tfconvert.client.steps import Patience

__all__ = ["AsyncClient", "AsyncJob", "Client", "Job", "JobInfo", "Patience"]
