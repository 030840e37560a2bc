"""Programs for people who change or release the project. No package contains them."""
