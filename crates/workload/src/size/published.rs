//! The published distributions, by name.

use rampmeter_types::Bytes;

use super::{SizeDist, SizeError, SizeInterpolation, homa};

/// Returns the published distribution called `name`.
///
/// # Errors
/// [`SizeError::UnknownName`], which lists the valid names.
pub fn named(name: &str) -> Result<SizeDist, SizeError> {
    let linear =
        |points: &[(f64, f64)], unit| SizeDist::new(points, SizeInterpolation::Linear, unit);
    match name {
        "imc10" => linear(IMC10, PACKET),
        "web-search" => linear(WEB_SEARCH, PACKET),
        "data-mining" => linear(DATA_MINING, PACKET),
        "ns-2-web-search" => SizeDist::new(WEB_SEARCH, SizeInterpolation::RoundedUp, PACKET),
        "ns-2-data-mining" => SizeDist::new(DATA_MINING, SizeInterpolation::RoundedUp, PACKET),
        "hpcc-web-search" => linear(HPCC_WEB_SEARCH, BYTE),
        "ali-storage" => linear(ALI_STORAGE, BYTE),
        "homa-w1" => SizeDist::new(&homa::w1(), SizeInterpolation::Steps, BYTE),
        "homa-w2" => SizeDist::new(&homa::w2(), SizeInterpolation::Steps, BYTE),
        "homa-w3" => SizeDist::new(&homa::w3(), SizeInterpolation::Steps, BYTE),
        "homa-w4" => SizeDist::new(&homa::w4(), SizeInterpolation::Steps, BYTE),
        "homa-w5" => SizeDist::new(&homa::w5(), SizeInterpolation::Steps, HOMA_PACKET),
        _ => Err(SizeError::UnknownName { got: name.to_owned() }),
    }
}

const BYTE: Bytes = Bytes::new(1);

/// Payload of a full packet in the studies of pFabric, pHost and dcPIM, the unit of their sizes.
pub(super) const PACKET: Bytes = Bytes::new(1460);

/// Payload of a full packet in the Homa study, the unit of its W5.
const HOMA_PACKET: Bytes = Bytes::new(1442);

/// Benson et al., IMC 2010, as tabulated for the pHost and dcPIM studies. Packets.
const IMC10: &[(f64, f64)] = &[
    (1.0, 0.5),
    (2.0, 0.6),
    (3.0, 0.7),
    (5.0, 0.75),
    (7.0, 0.8),
    (40.0, 0.8125),
    (72.0, 0.825),
    (137.0, 0.85),
    (267.0, 0.9),
    (1187.0, 0.95),
    (2107.0, 1.0),
];

/// DCTCP, SIGCOMM 2010, as tabulated for the pFabric study. Packets.
const WEB_SEARCH: &[(f64, f64)] = &[
    (6.0, 0.15),
    (13.0, 0.2),
    (19.0, 0.3),
    (33.0, 0.4),
    (53.0, 0.53),
    (133.0, 0.6),
    (667.0, 0.7),
    (1333.0, 0.8),
    (3333.0, 0.9),
    (6667.0, 0.97),
    (20000.0, 1.0),
];

/// VL2, SIGCOMM 2009, as tabulated for the pFabric study. Packets.
const DATA_MINING: &[(f64, f64)] = &[
    (1.0, 0.5),
    (2.0, 0.6),
    (3.0, 0.7),
    (7.0, 0.8),
    (267.0, 0.9),
    (2107.0, 0.95),
    (66667.0, 0.99),
    (666667.0, 1.0),
];

/// The web search file of the HPCC study (SIGCOMM 2019). Bytes, from zero.
const HPCC_WEB_SEARCH: &[(f64, f64)] = &[
    (0.0, 0.0),
    (10e3, 0.15),
    (20e3, 0.2),
    (30e3, 0.3),
    (50e3, 0.4),
    (80e3, 0.53),
    (200e3, 0.6),
    (1e6, 0.7),
    (2e6, 0.8),
    (5e6, 0.9),
    (10e6, 0.97),
    (30e6, 1.0),
];

/// AliStorage2019 of the HPCC study (SIGCOMM 2019), with the four digits of its file. Bytes, from
/// zero.
const ALI_STORAGE: &[(f64, f64)] = &[
    (0.0, 0.0),
    (4e3, 0.2293),
    (8e3, 0.6921),
    (16e3, 0.8061),
    (32e3, 0.9047),
    (64e3, 0.9353),
    (128e3, 0.9677),
    (256e3, 0.9753),
    (2e6, 1.0),
];
