"""Reports of recordings, as text, as one offline page, and as figures for papers."""
