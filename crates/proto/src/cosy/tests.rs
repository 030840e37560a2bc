use rampmeter_core::Header;

use super::wire::CosyHeader;

#[test]
fn impossible_fields_are_named() {
    let decode = |bytes: &[u8]| CosyHeader::decode(bytes).unwrap_err();
    let mut data = [0; 64];
    data[0] = 5;
    data[14] = 6;
    assert_eq!(decode(&data).to_string(), "field route length must be at most 5, got 6");
    data[13] = 2;
    assert_eq!(decode(&data).to_string(), "field last must be 0 or 1, got 2");
}
