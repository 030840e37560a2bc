//! Path selection (Fastpass §4): edge colouring of the racks' traffic in one slot.
//!
//! A slot's matching of hosts is a bipartite multigraph between source racks and destination racks.
//! Its edges are coloured so that no two of one colour meet in a rack. Then each colour is a set of
//! packets that can share paths without meeting on a link. A multigraph of degree d has such a
//! colouring with d colours.
//!
//! It is found by halving (Cole, Ost and Schirra 2001 survey the family). If d is even, an Euler
//! split gives each half degree d/2. If it is odd, a matching that covers all racks of degree d is
//! first taken out as a separate colour.

use std::collections::VecDeque;

/// Colours multigraphs, one after the other, in buffers that it keeps.
#[derive(Clone, Debug, Default)]
pub struct EdgeColourer {
    n_racks: usize,
    /// The two ends of each edge: a source rack, and a destination rack counted behind those.
    ends: Vec<(u32, u32)>,
    colours: Vec<u16>,
    /// Colours used so far.
    next: u16,
    /// All edges, reordered with each split.
    order: Vec<u32>,
    degrees: Vec<u32>,
    rack_edges: RackEdges,
    /// Per rack: the first of its edges that a walk has not looked at.
    cursor: Vec<u32>,
    /// Per edge: whether a walk has used it, or a matching has it.
    used: Vec<bool>,
    halves: [Vec<u32>; 2],
    /// Per rack: its partner in a matching, and the edge between them.
    mate: Vec<Option<(u32, u32)>>,
    reached: Vec<Option<(u32, u32)>>,
    frontier: VecDeque<u32>,
}

/// The edges at each rack, by their places among the edges that are looked at.
#[derive(Clone, Debug, Default)]
struct RackEdges {
    /// Start of each rack's edges in `places`, followed by the end.
    first: Vec<u32>,
    places: Vec<u32>,
    fill: Vec<u32>,
}

impl RackEdges {
    fn set(&mut self, edges: &[u32], ends: &[(u32, u32)], degrees: &[u32]) {
        self.first.clear();
        self.first.push(0);
        let mut end = 0;
        for degree in degrees {
            end += degree;
            self.first.push(end);
        }
        self.fill.clone_from(&self.first);
        self.places.clear();
        self.places.resize(2 * edges.len(), 0);
        for (place, &edge) in edges.iter().enumerate() {
            let (a, b) = ends[edge as usize];
            for rack in [a, b] {
                let at = &mut self.fill[rack as usize];
                self.places[*at as usize] = place as u32;
                *at += 1;
            }
        }
    }

    fn edges_of(&self, rack: u32) -> &[u32] {
        let (from, to) = (self.first[rack as usize], self.first[rack as usize + 1]);
        &self.places[from as usize..to as usize]
    }
}

impl EdgeColourer {
    /// Colours `edges`, pairs of a source rack and a destination rack below `n_racks`, so that
    /// edges of one colour share neither. Returns a colour for each edge, and how many colours
    /// there are: the largest degree.
    pub fn colour(&mut self, n_racks: usize, edges: &[(u16, u16)]) -> (&[u16], u16) {
        self.n_racks = n_racks;
        self.next = 0;
        let ends = |&(src, dst): &(u16, u16)| (src.into(), n_racks as u32 + u32::from(dst));
        self.ends.clear();
        self.ends.extend(edges.iter().map(ends));
        self.colours.clear();
        self.colours.resize(self.ends.len(), 0);
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(0..self.ends.len() as u32);
        self.run(&mut order);
        self.order = order;
        (&self.colours, self.next)
    }

    /// Sets the degrees of all racks. Returns the largest.
    fn count(&mut self, edges: &[u32]) -> u32 {
        self.degrees.clear();
        self.degrees.resize(2 * self.n_racks, 0);
        for &edge in edges {
            let (a, b) = self.ends[edge as usize];
            self.degrees[a as usize] += 1;
            self.degrees[b as usize] += 1;
        }
        self.degrees.iter().copied().max().unwrap_or(0)
    }

    fn run(&mut self, mut edges: &mut [u32]) {
        let mut most = self.count(edges);
        if most == 1 {
            // Their degree shows that they are a matching.
            return self.assign_colour(edges);
        }
        if most % 2 == 1 {
            self.cover(edges, most);
            let rest = partition(edges, &self.used);
            let (others, matched) = edges.split_at_mut(rest);
            self.assign_colour(matched);
            edges = others;
            most = self.count(edges);
        }
        if most > 0 {
            let (one, other) = self.split(edges);
            self.run(one);
            self.run(other);
        }
    }

    /// Gives a matching the next colour.
    fn assign_colour(&mut self, matching: &[u32]) {
        for &edge in matching {
            self.colours[edge as usize] = self.next;
        }
        self.next += 1;
    }

    /// Splits the edges into two halves in which every rack has half its degree, rounded either
    /// way. It walks along unused edges, giving them to the halves alternately. The first walks
    /// start at racks of odd degree. A closed walk in a bipartite graph has an even number of
    /// edges.
    fn split<'e>(&mut self, edges: &'e mut [u32]) -> (&'e mut [u32], &'e mut [u32]) {
        let Self { ends, degrees, rack_edges, cursor, used, halves, .. } = self;
        rack_edges.set(edges, ends, degrees);
        cursor.clone_from(&rack_edges.first);
        used.clear();
        used.resize(edges.len(), false);
        halves.iter_mut().for_each(Vec::clear);
        let n = degrees.len();
        let odd = (0..n).filter(|&rack| degrees[rack] % 2 == 1);
        for start in odd.chain(0..n) {
            // From a rack whose degree is odd a walk leads to another such rack; the remaining
            // edges are circles.
            let (mut rack, mut turn) = (start, 0);
            loop {
                let end = rack_edges.first[rack + 1];
                while cursor[rack] < end && used[rack_edges.places[cursor[rack] as usize] as usize]
                {
                    cursor[rack] += 1;
                }
                if cursor[rack] == end {
                    break;
                }
                let place = rack_edges.places[cursor[rack] as usize] as usize;
                used[place] = true;
                halves[turn].push(edges[place]);
                turn = 1 - turn;
                let (a, b) = ends[edges[place] as usize];
                rack = if rack == a as usize { b } else { a } as usize;
            }
        }
        let (one, other) = edges.split_at_mut(halves[0].len());
        one.copy_from_slice(&halves[0]);
        other.copy_from_slice(&halves[1]);
        (one, other)
    }

    /// Finds a matching that covers every rack of degree `most`, by augmenting paths. Marks its
    /// edges in `used`.
    fn cover(&mut self, edges: &[u32], most: u32) {
        self.rack_edges.set(edges, &self.ends, &self.degrees);
        let n = self.degrees.len();
        self.mate.clear();
        self.mate.resize(n, None);
        for start in 0..n {
            if self.degrees[start] == most && self.mate[start].is_none() {
                self.augment(start as u32, edges, most);
            }
        }
        self.used.clear();
        self.used.resize(edges.len(), false);
        for &(_, place) in self.mate.iter().flatten() {
            self.used[place as usize] = true;
        }
    }

    /// Matches `start` along a path that alternates between edges out of and in the matching. It
    /// ends at an unmatched rack, or at a rack on the side of `start` that may lose its mate. The
    /// degree of that one is not the largest (Mendelsohn and Dulmage).
    fn augment(&mut self, start: u32, edges: &[u32], most: u32) {
        let Self { ends, degrees, rack_edges, mate, reached, frontier, .. } = self;
        // By rack on the other side: the rack and the edge from which it was reached.
        reached.clear();
        reached.resize(mate.len(), None);
        frontier.clear();
        frontier.push_back(start);
        while let Some(rack) = frontier.pop_front() {
            for &place in rack_edges.edges_of(rack) {
                let (a, b) = ends[edges[place as usize] as usize];
                let other = if rack == a { b } else { a };
                if reached[other as usize].is_some() {
                    continue;
                }
                reached[other as usize] = Some((rack, place));
                let loser = match mate[other as usize] {
                    Some((mated, _)) if degrees[mated as usize] == most => {
                        frontier.push_back(mated);
                        continue;
                    }
                    Some((mated, _)) => Some(mated),
                    None => None,
                };
                if let Some(mated) = loser {
                    mate[mated as usize] = None;
                }
                let mut at = Some(other);
                while let Some(end) = at {
                    let (from, place) =
                        reached[end as usize].expect("the path leads back to its start");
                    let before = mate[from as usize].map(|(m, _)| m);
                    mate[from as usize] = Some((end, place));
                    mate[end as usize] = Some((from, place));
                    at = if from == start { None } else { before };
                }
                return;
            }
        }
        unreachable!(
            "a bipartite graph has a matching that covers all nodes of its largest degree"
        );
    }
}

/// Moves the edges that are matched behind the others, which keep their order. Returns how many
/// are not.
fn partition(edges: &mut [u32], is_matched: &[bool]) -> usize {
    let mut rest = 0;
    for (place, is_matched) in is_matched.iter().enumerate() {
        if !is_matched {
            edges.swap(rest, place);
            rest += 1;
        }
    }
    rest
}
