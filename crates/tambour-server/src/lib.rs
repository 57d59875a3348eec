//! Tambour as a service.
