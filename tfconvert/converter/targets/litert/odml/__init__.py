"""Subgraphs that accelerators execute as one, recognised to become `odml.*` composites."""
