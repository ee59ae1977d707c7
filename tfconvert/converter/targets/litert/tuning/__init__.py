"""Chooses among equal forms by their times, measured on this machine or on the device that the file is for."""
