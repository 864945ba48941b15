//! XTP (XT).
