// What all forms of Frequent Directions share: how they shrink, and what they count.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace skn {

// How eigenvalues λ₁ ≥ λ₂ ≥ … become the squared lengths of at most m − 1 rows, and what the ridge gains.
struct ShrinkRule {
  double share;  // of the m directions, from the smallest up, that shrink: 1 for FD and RFD, β for PFD
  double ridge;  // of each shrink that goes into α: ½ for RFD, 0 otherwise

  // Shrinks in place; returns ρ = λ_m (0 if there are fewer that are more than rounding).
  double apply(std::vector<double>& values, std::int64_t m, double rounding) const {
    const auto n = static_cast<std::int64_t>(values.size());
    const double rho = n >= m && values[m - 1] > rounding ? values[m - 1] : 0.0;
    const auto spared = m - static_cast<std::int64_t>(std::floor(share * static_cast<double>(m) + 1e-9));
    for (std::int64_t i = 0; i < n; ++i)
      values[i] = i >= m - 1 ? 0.0 : i < spared ? values[i] : values[i] - rho;
    return rho;
  }
};

struct FrequentCounts {
  // Rank of V, directions that gradients of the epoch have opened, these gradients, entries met since the
  // last sweep, rounds of the epoch, whether vectors are written out (FewFeatures), features of the group,
  // slots in use.
  enum { kRank, kOpened, kFilled, kMet, kRound, kFew, kMembers, kRecent, kSize };
};

}  // namespace skn
