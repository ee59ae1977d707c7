"""The client of the conversion service; docs/client.md teaches it."""

from __future__ import annotations

from tfconvert.converter.client.async_client import AsyncClient, AsyncJob
from tfconvert.converter.client.client import Client, Job
from tfconvert.converter.client.job_info import JobInfo
from tfconvert.converter.client.steps import Patience

__all__ = ["AsyncClient", "AsyncJob", "Client", "Job", "JobInfo", "Patience"]
