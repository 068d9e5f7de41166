"""Reading both generations in order to compare them."""
