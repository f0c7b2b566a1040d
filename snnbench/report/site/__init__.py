"""The site: all recordings of a folder as static pages, which need no server, no network and no script to read."""
