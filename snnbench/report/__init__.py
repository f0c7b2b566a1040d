"""Reports: what recordings say, as text, as one offline page, and as figures for papers."""
