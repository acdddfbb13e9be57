#include "transport/ports.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "transport/fault/fault_port.h"
#include "transport/udp/endpoint.h"
#include "transport/udp/udp_port.h"

namespace optireduce {
namespace {

FaultPlan PlanOf(const Settings& settings, Rank rank) {
  FaultPlan plan;
  plan.loss = settings.fault_loss_pct / 100;
  plan.burst = settings.fault_burst_pct / 100;
  plan.burst_packets = std::max(1.0, static_cast<double>(settings.fault_burst_packets));
  plan.duplicate = settings.fault_duplicate_pct / 100;
  plan.reorder = settings.fault_reorder_pct / 100;
  plan.corrupt = settings.fault_corrupt_pct / 100;
  plan.delay = settings.fault_delay;
  plan.clog = settings.fault_clog;
  // A clog that would never end is none.
  plan.clog_every = std::max(settings.fault_clog_every, settings.fault_clog + Duration{1});
  plan.send_refused = settings.fault_send_refused_pct / 100;
  plan.seed = settings.fault_seed;
  plan.node = rank;
  return plan;
}

std::string DescribePlan(const FaultPlan& plan) {
  char text[256];
  std::snprintf(text, sizeof text,
                ", injected faults: loss %g%% bursts %g%% duplicate %g%% reorder %g%% corrupt %g%% "
                "delay %g us clog %g us refused sends %g%% seed %llu",
                plan.loss * 100, plan.burst * 100, plan.duplicate * 100, plan.reorder * 100,
                plan.corrupt * 100, static_cast<double>(plan.delay.count()) / 1e3,
                static_cast<double>(plan.clog.count()) / 1e3, plan.send_refused * 100,
                static_cast<unsigned long long>(plan.seed));
  return text;
}

class BoundUdpPort : public BoundPort {
 public:
  BoundUdpPort(std::unique_ptr<UdpPort> udp, const FaultPlan& plan, Endpoint advertised)
      : udp_(udp.get()), plan_(plan), advertised_(advertised), port_(std::move(udp)) {
    if (plan_.active()) port_ = std::make_unique<FaultPort>(std::move(port_), plan_);
  }

  PacketPort& port() override { return *port_; }
  std::string endpoint() const override { return advertised_.ToString(); }
  std::vector<std::string> notices() const override { return udp_->notices(); }
  std::string Describe() const override {
    return udp_->Describe() + (plan_.active() ? DescribePlan(plan_) : "");
  }

  std::vector<std::uint32_t> probe_bytes() const override { return udp_->probe_bytes(); }
  void SetPacketBytes(std::uint32_t packet_bytes_max) override {
    udp_->SetPacketBytes(packet_bytes_max);
  }
  std::size_t IpBytes(std::uint32_t packet_bytes) const override {
    return udp_->IpBytes(packet_bytes);
  }

  Status SetPeers(std::span<const std::string> by_rank, Rank self) override {
    std::vector<Endpoint> endpoints(by_rank.size());
    for (Rank rank = 0; rank < by_rank.size(); ++rank) {
      if (rank == self) continue;
      const Result<Endpoint> endpoint = Endpoint::Parse(by_rank[rank]);
      if (!endpoint.ok()) return endpoint.status().Context("rank " + std::to_string(rank));
      endpoints[rank] = *endpoint;
    }
    return udp_->SetPeers(endpoints, self);
  }

 private:
  UdpPort* const udp_;  // the innermost of port_
  const FaultPlan plan_;
  const Endpoint advertised_;
  std::unique_ptr<PacketPort> port_;
};

}  // namespace

Result<std::unique_ptr<BoundPort>> BindPort(const Settings& settings,
                                            const std::string& bind_address,
                                            const std::string& advertise_address, Rank rank) {
  UdpPortOptions options;
  options.bind_address = bind_address;
  options.path_mtu = settings.path_mtu;
  options.socket_buffer_bytes = settings.udp_socket_buffer_bytes;
  options.gso = settings.udp_gso == Offload::kAuto;
  options.gro = settings.udp_gro == Offload::kAuto;
  Result<std::unique_ptr<UdpPort>> udp = UdpPort::Bind(options);
  if (!udp.ok()) return udp.status();

  Endpoint advertised = (*udp)->local_endpoint();
  if (!advertise_address.empty()) {
    const Result<Endpoint> wanted = Endpoint::FromHost(advertise_address, advertised.port());
    if (!wanted.ok()) return wanted.status().Context("address to advertise");
    if (wanted->family() != advertised.family()) {
      return Status(Code::kInvalidArgument, "address to advertise, " + advertise_address +
                                                ": not of the family of the bound address, " +
                                                bind_address);
    }
    advertised = *wanted;
  }
  if (advertised.is_wildcard()) {
    return Status(Code::kInvalidArgument,
                  "bound to " + bind_address +
                      ", which is every address of this host: say which one peers shall use");
  }
  return std::unique_ptr<BoundPort>(
      std::make_unique<BoundUdpPort>(*std::move(udp), PlanOf(settings, rank), advertised));
}

}  // namespace optireduce
