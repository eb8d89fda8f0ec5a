"""The page that people look at: one HTML file about a verified artifact; and its small form in notebooks."""
