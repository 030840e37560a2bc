//! Tests of pFabric's parts. Whole runs are in `tests/` of this crate.

mod wire {
    use super::super::wire::*;
    use rampmeter_core::Header;

    #[test]
    fn data_is_ranked_by_what_remains_and_all_else_goes_first() {
        let (flow, tx_slot, seq, remaining, size) = (1, 2, 3, 4, 5);
        assert_eq!(PfabricHeader::Data { flow, tx_slot, seq, remaining, size }.rank(), 4);
        assert_eq!(PfabricHeader::Probe { flow, tx_slot, remaining, size }.rank(), 0);
        assert_eq!(PfabricHeader::Ack { tx_slot, cumulative: 3, sack: 0 }.rank(), 0);
    }
}
