"""The pages in a real browser: Debian's chromium, driven by playwright. Skipped where no chromium is installed."""
