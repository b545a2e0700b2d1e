"""How the service does: samples twice a minute (sampling), which become hours (thinning) and
incidents (incidents), and what everybody may see of that (facts, page)."""
