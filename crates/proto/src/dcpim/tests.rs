//! Tests of dcPIM.
