//! Tests of pHost's parts. Whole runs are in `tests/` of this crate.

mod wire {
    use super::super::wire::*;
    use rampmeter_core::{Header, Span, WireError};

    #[test]
    fn layout_is_type_byte_then_big_endian_fields() {
        let time_left = Span::from_ps(3);
        let (flow, tx_slot, size, tenant, repeated) = (1, 2, 0x0304, 5, true);
        let rts = PhostHeader::Rts { flow, tx_slot, size, time_left, tenant, repeated };
        let mut bytes = [0; 28];
        assert_eq!(rts.encode(&mut bytes), Ok(28));
        assert_eq!(bytes[..17], [1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 3, 4]);
        assert_eq!(bytes[17..], [0, 0, 0, 0, 0, 0, 0, 3, 0, 5, 1]);
    }

    #[test]
    fn impossible_fields_are_named() {
        let decode = |bytes: &[u8]| PhostHeader::decode(bytes).unwrap_err();
        assert_eq!(decode(&[]), WireError::Truncated { needed: 1, got: 0 });
        assert_eq!(decode(&[99]), WireError::UnknownType(99));
        let no_size = [1; 1].iter().chain(&[0; 40]).copied().collect::<Vec<u8>>();
        assert_eq!(decode(&no_size).to_string(), "field size must be at least 1, got 0");
    }
}
