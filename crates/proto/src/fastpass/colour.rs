//! Path selection (Fastpass §4): edge colouring of the racks' traffic in one slot.
//!
//! A slot's matching of hosts is a bipartite multigraph between source racks and destination racks.
//! If its edges are coloured so that no two of one colour meet in a rack, each colour is a set of
//! packets that can share paths without meeting on a link. A multigraph of degree d has such a
//! colouring with d colours. It is found by halving: where d is even, an Euler split gives each
//! half degree d/2; where it is odd, a matching that covers all racks of degree d is taken out
//! as a colour of its own first (Cole, Ost and Schirra 2001 survey the family).

/// Colours `edges`, pairs of a source rack and a destination rack below `n_racks`, so that edges of
/// one colour share neither. Returns a colour for each edge, and how many colours there are: the
/// largest degree.
pub fn colour(n_racks: usize, edges: &[(u16, u16)]) -> (Vec<u16>, u16) {
    let mut colours = vec![0; edges.len()];
    let all: Vec<u32> = (0..edges.len() as u32).collect();
    let mut colouring = Colouring { n_racks, edges, colours: &mut colours, next: 0 };
    colouring.run(all);
    let n = colouring.next;
    (colours, n)
}

struct Colouring<'a> {
    n_racks: usize,
    edges: &'a [(u16, u16)],
    colours: &'a mut [u16],
    /// Colours used so far.
    next: u16,
}

impl Colouring<'_> {
    fn ends(&self, edge: u32) -> (usize, usize) {
        let (src, dst) = self.edges[edge as usize];
        (usize::from(src), self.n_racks + usize::from(dst))
    }

    /// Degrees of all racks, as sources and then as destinations.
    fn degrees(&self, edges: &[u32]) -> Vec<u32> {
        let mut degrees = vec![0; 2 * self.n_racks];
        for &edge in edges {
            let (a, b) = self.ends(edge);
            degrees[a] += 1;
            degrees[b] += 1;
        }
        degrees
    }

    fn run(&mut self, mut edges: Vec<u32>) {
        let mut degrees = self.degrees(&edges);
        let mut most = degrees.iter().copied().max().unwrap_or(0);
        if most == 0 {
            return;
        }
        if most % 2 == 1 {
            let matched = self.cover(&edges, &degrees, most);
            for (edge, _) in edges.iter().zip(&matched).filter(|(_, is_in)| **is_in) {
                self.colours[*edge as usize] = self.next;
            }
            self.next += 1;
            let mut is_in = matched.iter();
            edges.retain(|_| !*is_in.next().expect("an answer for each edge"));
            degrees = self.degrees(&edges);
            most = degrees.iter().copied().max().unwrap_or(0);
        }
        if most > 0 {
            let (one, other) = self.split(&edges, &degrees);
            self.run(one);
            self.run(other);
        }
    }

    /// Splits the edges into two halves in which every rack has half its degree, rounded either
    /// way: walks along unused edges, giving them to the halves in turn. Walks start where the
    /// degree is odd first, and a closed walk in a bipartite graph has an even number of edges.
    fn split(&self, edges: &[u32], degrees: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let mut first = vec![0u32; degrees.len() + 1];
        for (node, &degree) in degrees.iter().enumerate() {
            first[node + 1] = first[node] + degree;
        }
        let mut fill: Vec<u32> = first[..degrees.len()].to_vec();
        let mut at_node = vec![0u32; 2 * edges.len()];
        for (idx, &edge) in edges.iter().enumerate() {
            let (a, b) = self.ends(edge);
            for node in [a, b] {
                at_node[fill[node] as usize] = idx as u32;
                fill[node] += 1;
            }
        }
        let mut cursor: Vec<u32> = first[..degrees.len()].to_vec();
        let mut used = vec![false; edges.len()];
        let mut halves = (Vec::new(), Vec::new());
        let odd = (0..degrees.len()).filter(|&n| degrees[n] % 2 == 1);
        for start in odd.chain(0..degrees.len()) {
            // From a rack whose degree is odd a walk leads to another such rack; what is left are
            // circles.
            let (mut node, mut turn) = (start, false);
            loop {
                let end = first[node + 1];
                while cursor[node] < end && used[at_node[cursor[node] as usize] as usize] {
                    cursor[node] += 1;
                }
                if cursor[node] == end {
                    break;
                }
                let idx = at_node[cursor[node] as usize] as usize;
                used[idx] = true;
                let half = if turn { &mut halves.1 } else { &mut halves.0 };
                half.push(edges[idx]);
                turn = !turn;
                let (a, b) = self.ends(edges[idx]);
                node = if node == a { b } else { a };
            }
        }
        halves
    }

    /// A matching that covers every rack of degree `most`, by augmenting paths. Which edges are in
    /// it.
    fn cover(&self, edges: &[u32], degrees: &[u32], most: u32) -> Vec<bool> {
        let n = 2 * self.n_racks;
        let mut around = vec![Vec::new(); n];
        for (idx, &edge) in edges.iter().enumerate() {
            let (a, b) = self.ends(edge);
            around[a].push((b, idx));
            around[b].push((a, idx));
        }
        let mut mate: Vec<Option<(usize, usize)>> = vec![None; n];
        for start in 0..n {
            if degrees[start] == most && mate[start].is_none() {
                self.augment(start, most, degrees, &around, &mut mate);
            }
        }
        let mut is_in = vec![false; edges.len()];
        for (_, idx) in mate.into_iter().flatten() {
            is_in[idx] = true;
        }
        is_in
    }

    /// Matches `start` along a path that alternates between edges out of and in the matching. It
    /// ends at an unmatched rack, or in a rack of its own side that may lose its mate because its
    /// degree is not the largest (Mendelsohn and Dulmage).
    fn augment(
        &self,
        start: usize,
        most: u32,
        degrees: &[u32],
        around: &[Vec<(usize, usize)>],
        mate: &mut [Option<(usize, usize)>],
    ) {
        // How each rack on the other side was reached: from which rack, by which edge.
        let mut reached: Vec<Option<(usize, usize)>> = vec![None; mate.len()];
        let mut frontier = std::collections::VecDeque::from([start]);
        while let Some(node) = frontier.pop_front() {
            for &(other, edge) in &around[node] {
                if reached[other].is_some() {
                    continue;
                }
                reached[other] = Some((node, edge));
                let loser = match mate[other] {
                    Some((mated, _)) if degrees[mated] == most => {
                        frontier.push_back(mated);
                        continue;
                    }
                    Some((mated, _)) => Some(mated),
                    None => None,
                };
                if let Some(mated) = loser {
                    mate[mated] = None;
                }
                let mut at = Some(other);
                while let Some(end) = at {
                    let (from, edge) = reached[end].expect("the path leads back to its start");
                    let before = mate[from].map(|(m, _)| m);
                    mate[from] = Some((end, edge));
                    mate[end] = Some((from, edge));
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
