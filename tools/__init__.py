"""Programs of a checkout that are not packaged: generators of files, and rigs for hosts."""
