//! SSCOP (Q.2110).
