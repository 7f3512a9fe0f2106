//! The two system call filters.
