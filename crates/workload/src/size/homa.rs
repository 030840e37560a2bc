//! The five workloads of the Homa study (SIGCOMM 2018), as its authors publish them.
//!
//! The published tables are lists of sizes that occur, not curves to interpolate. They were made
//! from a few measured points. Sizes between them are filled in evenly in 1/size (W2, W3), in log
//! size (W4) or in packets (W5), and probabilities linearly. The rules here reproduce the published
//! entries and are shorter than the tables. Sources: the size distribution files of the authors'
//! simulator (PlatformLab/HomaSimulation: Google_SearchRPC, Facebook_HadoopDist_All,
//! FacebookKeyValueMsgSizeDist, DCTCP_MsgSizeDist) and, for W3 and the filled W4, the tables in
//! PlatformLab/HomaModule, util/dist.cc.

/// A measured point: size, cumulative probability, and number of entries from the one before to it.
struct MeasuredPoint(f64, f64, u32);

/// W1: Facebook's memcached. Sizes to 15 bytes are as measured. Above that they follow a
/// generalised Pareto law (Atikoglu et al., SIGMETRICS 2012). It is listed at 300 sizes, evenly
/// spaced in log size from 16 B to 100 kB, rounded down to whole bytes.
pub(super) fn w1() -> Vec<(f64, f64)> {
    const SHAPE: f64 = 0.348_238;
    const SCALE: f64 = 214.476;
    const FROM: f64 = 15.0;
    let body = W1_BODY[W1_BODY.len() - 1];
    let mut points: Vec<(f64, f64)> =
        W1_BODY.iter().enumerate().map(|(i, &cdf)| ((i + 1) as f64, cdf)).collect();
    for i in 0..300 {
        let size = 16.0 * (1e5f64 / 16.0).powf(f64::from(i) / 299.0);
        let tail = (1.0 + SHAPE * (size - FROM) / SCALE).powf(-1.0 / SHAPE);
        let cdf = if i == 299 { 1.0 } else { 1.0 - (1.0 - body) * tail };
        // The small addition corrects the rounding error of 16 and 100 000.
        points.push(((size + 1e-6).floor(), cdf));
    }
    points
}

/// W2: search queries at Google.
pub(super) fn w2() -> Vec<(f64, f64)> {
    harmonic(W2)
}

/// W3: all remote procedure calls at Google.
pub(super) fn w3() -> Vec<(f64, f64)> {
    harmonic(W3)
}

/// W4: Facebook's Hadoop (Roy et al., SIGCOMM 2015), ten entries between measured points.
pub(super) fn w4() -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for pair in W4.windows(2) {
        let ((from, cdf_from), (to, cdf_to)) = (pair[0], pair[1]);
        for j in 1..=10 {
            let part = f64::from(j) / 10.0;
            let size = (from * (to / from).powf(part)).round();
            points.push((size, cdf_from + (cdf_to - cdf_from) * part));
        }
    }
    points
}

/// W5: web search (DCTCP, SIGCOMM 2010) in packets of 1442 B. The published table lacks the point
/// 6667:0.97 and continues from 6667:0.9 to 20000:1. Its mean is therefore 1744.7 packets.
pub(super) fn w5() -> Vec<(f64, f64)> {
    let grid = (1..=248)
        .chain((19..=49).map(|j: u32| (40 * j).div_ceil(3)))
        .chain([667])
        .chain((1..=39).map(|j: u32| (2001 + 50 * j).div_ceil(3)))
        .chain((1333..=3333).step_by(50));
    let mut points: Vec<(f64, f64)> =
        grid.map(|n| (f64::from(n), interpolate(W5, f64::from(n)))).collect();
    for j in 1..=40u32 {
        let n = f64::from((20_001 + 1000 * j).div_ceil(3).min(20_000));
        points.push((n, 0.9 + 0.1 * (n - 6667.0) / 13_333.0));
    }
    points
}

/// Fills in sizes evenly in 1/size.
fn harmonic(knots: &[MeasuredPoint]) -> Vec<(f64, f64)> {
    let mut points = vec![(knots[0].0, knots[0].1)];
    for pair in knots.windows(2) {
        let (MeasuredPoint(from, cdf_from, _), MeasuredPoint(to, cdf_to, n)) = (&pair[0], &pair[1]);
        for j in 1..=*n {
            let part = f64::from(j) / f64::from(*n);
            let size = (1.0 / (1.0 / from - (1.0 / from - 1.0 / to) * part)).round();
            points.push((size, cdf_from + (cdf_to - cdf_from) * part));
        }
    }
    points
}

fn interpolate(knots: &[(f64, f64)], x: f64) -> f64 {
    let upper = knots.partition_point(|&(size, _)| size < x).clamp(1, knots.len() - 1);
    let ((from, cdf_from), (to, cdf_to)) = (knots[upper - 1], knots[upper]);
    cdf_from + (cdf_to - cdf_from) * (x - from) / (to - from)
}

const W1_BODY: [f64; 15] = [
    0.00583, 0.18403, 0.27642, 0.27660, 0.30400, 0.30465, 0.31071, 0.31094, 0.31931, 0.32768,
    0.41757, 0.41849, 0.42175, 0.44155, 0.47,
];

#[rustfmt::skip]
const W2: &[MeasuredPoint] = &[
    MeasuredPoint(2.0, 0.0756033901818394, 1), MeasuredPoint(3.0, 0.132305932818219, 1),
    MeasuredPoint(4.0, 0.151206780363679, 1), MeasuredPoint(8.0, 0.170107627909139, 1),
    MeasuredPoint(32.0, 0.189008475454599, 1), MeasuredPoint(64.0, 0.326435928252878, 10),
    MeasuredPoint(128.0, 0.341703173597455, 10), MeasuredPoint(256.0, 0.463839540642395, 10),
    MeasuredPoint(512.0, 0.910400619997895, 10), MeasuredPoint(1024.0, 0.958110136514154, 10),
    MeasuredPoint(2048.0, 0.981010712777766, 10), MeasuredPoint(4096.0, 0.995323561778495, 10),
    MeasuredPoint(8192.0, 0.998424683031419, 10), MeasuredPoint(16384.0, 0.99890177775002, 10),
    MeasuredPoint(32768.0, 0.999140325109321, 10), MeasuredPoint(65536.0, 0.999349054281293, 10),
    MeasuredPoint(131072.0, 0.999870877211223, 10), MeasuredPoint(262144.0, 0.999975241797209, 10),
    MeasuredPoint(524288.0, 0.999982696460333, 10), MeasuredPoint(3529904.0, 1.0, 10),
];

#[rustfmt::skip]
const W3: &[MeasuredPoint] = &[
    MeasuredPoint(8.0, 0.0648826230027598, 1), MeasuredPoint(32.0, 0.0973239345041398, 1),
    MeasuredPoint(64.0, 0.155270736542611, 5), MeasuredPoint(128.0, 0.351573142510763, 6),
    MeasuredPoint(256.0, 0.497900763354628, 8), MeasuredPoint(512.0, 0.784921250116593, 11),
    MeasuredPoint(1024.0, 0.863199568388467, 14), MeasuredPoint(2048.0, 0.908861924105788, 18),
    MeasuredPoint(4096.0, 0.934954649374235, 24), MeasuredPoint(8192.0, 0.964309064519002, 31),
    MeasuredPoint(16384.0, 0.984694041115598, 41), MeasuredPoint(32768.0, 0.990401835580264, 53),
    MeasuredPoint(65536.0, 0.993255726452483, 69), MeasuredPoint(131072.0, 0.997128873150657, 90),
    MeasuredPoint(262144.0, 0.998453102760117, 118),
    MeasuredPoint(524288.0, 0.999498229936155, 153),
    MeasuredPoint(15158197.0, 1.0, 199),
];

#[rustfmt::skip]
const W4: &[(f64, f64)] = &[
    (50.0, 0.0), (92.0, 0.0074), (217.0, 0.0149), (271.0, 0.0409), (300.0, 0.0520), (326.0, 0.1375),
    (376.0, 0.2026), (425.0, 0.2230), (480.0, 0.2639), (600.0, 0.4591), (679.0, 0.5167),
    (737.0, 0.5520), (800.0, 0.5762), (885.0, 0.5912), (1042.0, 0.6097), (1277.0, 0.6282),
    (1413.0, 0.6394), (1534.0, 0.6468), (1664.0, 0.6673), (2214.0, 0.6747), (3396.0, 0.6840),
    (5210.0, 0.6933), (7830.0, 0.7082), (31946.0, 0.7212), (36844.0, 0.7305), (39973.0, 0.7398),
    (44260.0, 0.7584), (47050.0, 0.7788), (51046.0, 0.8160), (62583.0, 0.8234), (70722.0, 0.8327),
    (75180.0, 0.8420), (81565.0, 0.8717), (102058.0, 0.8885), (115331.0, 0.8978),
    (133013.0, 0.9070), (156563.0, 0.9164), (184284.0, 0.9257), (212546.0, 0.9349),
    (240177.0, 0.9442), (288520.0, 0.9535), (470507.0, 0.9628), (736642.0, 0.9684),
    (940700.0, 0.9721), (1769244.0, 0.9814), (2169118.0, 0.9870), (10000000.0, 1.0),
];

#[rustfmt::skip]
const W5: &[(f64, f64)] = &[
    (0.0, 0.0), (6.0, 0.15), (13.0, 0.2), (19.0, 0.3), (33.0, 0.4), (53.0, 0.53), (133.0, 0.6),
    (667.0, 0.7), (1333.0, 0.8), (3333.0, 0.9),
];
