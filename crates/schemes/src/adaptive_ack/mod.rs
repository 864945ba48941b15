//! Adaptive acknowledgment (AA).
