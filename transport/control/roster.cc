#include "transport/control/roster.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "transport/control/endpoint.h"

namespace optireduce::control {
namespace {

constexpr std::size_t kLinesShownMax = 12;
constexpr std::size_t kListedMax = 32;

template <typename Value>
using Camps = std::map<Value, std::vector<Rank>>;

// The camp that is right: the largest; of equals the one with the lowest rank.
template <typename Value>
typename Camps<Value>::const_iterator Right(const Camps<Value>& camps) {
  return std::max_element(camps.begin(), camps.end(), [](const auto& a, const auto& b) {
    if (a.second.size() != b.second.size()) return a.second.size() < b.second.size();
    return a.second.front() > b.second.front();
  });
}

std::string Verb(const std::vector<Rank>& ranks) { return ranks.size() == 1 ? " has " : " have "; }

template <typename Value>
std::string Differences(std::string_view what, const Camps<Value>& camps) {
  if (camps.size() < 2) return {};
  const auto right = Right(camps);
  std::string out(what);
  out += ": ";
  const auto text = [](const Value& value) {
    if constexpr (std::is_integral_v<Value>) {
      return std::to_string(value);
    } else {
      return Quoted(value);
    }
  };
  for (auto camp = camps.begin(); camp != camps.end(); ++camp) {
    if (camp == right) continue;
    out += RankList(camp->second) + Verb(camp->second) + text(camp->first) + ", ";
  }
  return out + RankList(right->second) + Verb(right->second) + text(right->first);
}

std::map<std::string, std::string> Options(std::string_view text) {
  std::map<std::string, std::string> out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    out[std::string(line.substr(0, equals))] = std::string(line.substr(equals + 1));
  }
  return out;
}

// "a=1 (others: 2), b unset (others: 3)"
std::string OptionDifferences(std::string_view odd_text, std::string_view right_text) {
  const auto odd = Options(odd_text);
  const auto right = Options(right_text);
  std::map<std::string, std::pair<std::string, std::string>> lines;
  for (const auto& [path, value] : odd) {
    const auto other = right.find(path);
    if (other == right.end()) {
      lines[path] = {"=" + value, "not there"};
    } else if (other->second != value) {
      lines[path] = {"=" + value, "=" + other->second};
    }
  }
  for (const auto& [path, value] : right) {
    if (!odd.contains(path)) lines[path] = {" not there", "=" + value};
  }
  if (lines.empty()) return "the hash (no option that is sent differs)";
  std::string out;
  std::size_t shown = 0;
  for (const auto& [path, values] : lines) {
    if (shown++ == kLinesShownMax) return out + ", and more";
    out += (out.empty() ? "" : ", ") + path + values.first + " (others: " +
           (values.second.starts_with('=') ? path : "") + values.second + ")";
  }
  return out;
}

}  // namespace

std::string RankList(std::span<const Rank> ranks) {
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  const std::size_t listed = std::min(ranks.size(), kListedMax);
  for (std::size_t i = 0; i < listed; ++i) out += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  if (listed < ranks.size()) out += " and " + std::to_string(ranks.size() - listed) + " more";
  return out;
}

const Claim* Roster::Find(Rank rank) const {
  const auto at = claims_.find(rank);
  return at == claims_.end() ? nullptr : &at->second;
}

bool Roster::Complete() const {
  std::uint32_t wanted = world_size_;
  for (const auto& [rank, claim] : claims_) wanted = std::max(wanted, claim.world_size);
  return claims_.size() == wanted;
}

std::vector<Rank> Roster::Missing() const {
  std::vector<Rank> out;
  for (Rank rank = 0; rank < world_size_; ++rank) {
    if (!claims_.contains(rank)) out.push_back(rank);
  }
  return out;
}

Status Roster::Agreement() const {
  Camps<std::uint32_t> worlds;
  Camps<std::string> versions;
  Camps<std::uint64_t> configs;
  for (const auto& [rank, claim] : claims_) {
    worlds[claim.world_size].push_back(rank);
    versions[claim.version].push_back(rank);
    configs[claim.config_hash].push_back(rank);
  }
  std::vector<std::string> faults;
  if (worlds.size() > 1) faults.push_back(Differences("world size", worlds));
  if (versions.size() > 1) faults.push_back(Differences("version", versions));
  if (configs.size() > 1) {
    const auto right = Right(configs);
    const std::string& right_text = claims_.at(right->second.front()).config_text;
    for (auto camp = configs.begin(); camp != configs.end(); ++camp) {
      if (camp == right) continue;
      faults.push_back("configuration: " + RankList(camp->second) + Verb(camp->second) +
                       OptionDifferences(claims_.at(camp->second.front()).config_text, right_text));
    }
  }
  if (faults.empty()) return Status::Ok();
  std::string text = "the ranks disagree: ";
  for (std::size_t i = 0; i < faults.size(); ++i) text += (i == 0 ? "" : "; ") + faults[i];
  return Status(Code::kMismatch, text);
}

Status Roster::Addresses() const {
  Camps<bool> loopback;
  Camps<bool> ipv6;
  for (const auto& [rank, claim] : claims_) {
    const Result<HostPort> split = SplitHostPort(claim.endpoint);
    if (!split.ok() || !split->port || FamilyOf(split->host) == AddressFamily::kAny) {
      return Status(Code::kInvalidArgument, RankList({&rank, 1}) +
                                                " gave no usable data address: " +
                                                Quoted(claim.endpoint));
    }
    if (IsWildcard(split->host)) {
      return Status(Code::kInvalidArgument,
                    RankList({&rank, 1}) + " tells its peers " + Quoted(claim.endpoint) +
                        ", which nobody can send to: set OPTIREDUCE_NET_ADVERTISE");
    }
    loopback[IsLoopback(split->host)].push_back(rank);
    ipv6[FamilyOf(split->host) == AddressFamily::kIpv6].push_back(rank);
  }
  if (loopback.size() > 1) {
    const std::vector<Rank>& local = loopback[true];
    return Status(Code::kInvalidArgument,
                  RankList(local) + " would tell peers a loopback address (" +
                      claims_.at(local.front()).endpoint + "), which " +
                      RankList(loopback[false]) +
                      " cannot reach: give MASTER_ADDR, OPTIREDUCE_NET_BIND or "
                      "OPTIREDUCE_NET_ADVERTISE an address of the network");
  }
  if (ipv6.size() > 1) {
    return Status(Code::kInvalidArgument,
                  RankList(ipv6[true]) + (ipv6[true].size() == 1 ? " uses" : " use") + " IPv6, " +
                      RankList(ipv6[false]) +
                      " IPv4 for data: set OPTIREDUCE_NET_FAMILY to one of them on all ranks");
  }
  return Status::Ok();
}

std::vector<Member> Roster::Members() const {
  std::vector<Member> out;
  for (const auto& [rank, claim] : claims_) out.push_back({claim.host, claim.endpoint, claim.pid});
  return out;
}

}  // namespace optireduce::control
