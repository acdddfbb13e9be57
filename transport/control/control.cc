#include "transport/control/control.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "lib/check.h"
#include "transport/control/client.h"
#include "transport/control/endpoint.h"
#include "transport/control/master.h"
#include "transport/control/proof.h"
#include "transport/control/roster.h"

namespace optireduce::control {
namespace {

constexpr Duration kLimitMax = std::chrono::hours(24 * 365);
// Beyond its time, how long a call waits for a control thread that is held up.
constexpr std::chrono::seconds kThreadSlack{2};

// Closes the descriptor unless it was passed on.
class FdOwner {
 public:
  explicit FdOwner(int fd) : fd_(fd) {}
  ~FdOwner() {
    if (fd_ >= 0) close(fd_);
  }
  FdOwner(const FdOwner&) = delete;
  FdOwner& operator=(const FdOwner&) = delete;
  void Release() { fd_ = -1; }

 private:
  int fd_;
};

Status Check(const Launch& launch, const LocalInfo& info, const BindData& bind_data) {
  const auto fault = [](const std::string& text) { return Status(Code::kInvalidArgument, text); };
  if (launch.world_size == 0 || launch.world_size > kRanksMax) {
    return fault("world size " + std::to_string(launch.world_size) + " is not in 1 to " +
                 std::to_string(kRanksMax));
  }
  if (launch.rank >= launch.world_size) {
    return fault("with world size " + std::to_string(launch.world_size) + " there is no rank " +
                 std::to_string(launch.rank));
  }
  if (launch.listen_fd >= 0 && launch.rank != 0) return fault("only rank 0 listens");
  if (launch.world_size == 1) return Status::Ok();
  if (!bind_data) return fault("there is nobody to bind the data port");
  if (launch.listen_fd < 0 || launch.rank != 0) {
    if (launch.master_address.empty()) return fault("the master has no address");
    if (launch.master_port == 0) return fault("the master has no port");
  }
  if (info.wire_config_text.find('\0') != std::string::npos) {
    return fault("the configuration text is not text");
  }
  return Status::Ok();
}

std::string Place(const Launch& launch) {
  std::string out = "join group as rank " + std::to_string(launch.rank) + " of " +
                    std::to_string(launch.world_size);
  if (launch.world_size > 1 && !launch.master_address.empty()) {
    out += " at " + JoinHostPort(launch.master_address, launch.master_port);
  }
  return out;
}

}  // namespace

class ControlPlane::Impl final : public Sink {
 public:
  using OnAll = std::function<void(Result<std::vector<Bytes>>)>;

  Impl(RoleParts parts, std::uint32_t world_size)
      : work_(asio::make_work_guard(io_)), gone_(world_size, false) {
    parts.sink = this;
    parts.guests = &guests_;
    const bool master = parts.launch.rank == 0;
    if (master) {
      role_ = std::make_unique<Master>(io_, std::move(parts));
    } else {
      role_ = std::make_unique<Client>(io_, std::move(parts));
    }
  }

  ~Impl() override {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] {
      role_->Stop();
      io_.stop();
      stopped_ = true;
    });
    thread_.join();
  }

  // Gives the first outcome.
  Status Run() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    // The application's signals are for its own threads; faults are for the thread that has them.
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
      sigdelset(&all, fault);
    }
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { Loop(); });
    } catch (const std::system_error& error) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      return {Code::kUnavailable, std::string("start the control thread: ") + error.what()};
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    std::unique_lock lock(mutex_);
    outcome_known_.wait(lock, [this] { return outcome_.has_value(); });
    return *outcome_;
  }

  const Membership& membership() const { return *membership_; }
  const GuestCounts& guests() const { return guests_; }

  void SetEventHandler(std::function<void(const Event&)> handler) {
    std::promise<void> done;
    asio::post(io_, [&] {
      handler_ = std::move(handler);
      while (handler_ && !backlog_.empty()) {
        const Event event = std::move(backlog_.front());
        backlog_.erase(backlog_.begin());
        handler_(event);
      }
      done.set_value();
    });
    done.get_future().wait();
  }

  void Exchange(Bytes own, OnAll on_all) {
    asio::post(io_, [this, own = std::move(own), on_all = std::move(on_all)]() mutable {
      OR_CHECK(!on_all_ && own.size() <= kShareBytesMax);
      on_all_ = std::move(on_all);
      if (left_) return EndExchange(Status(Code::kAborted, "this rank leaves"));
      if (!first_gone_.ok()) return EndExchange(first_gone_);
      role_->Share(std::move(own));
    });
  }

  void Propose(const Change& change) {
    asio::post(io_, [this, change] { role_->Propose(change); });
  }

  void Answer(const Ready& ready) {
    asio::post(io_, [this, ready] { role_->Answer(ready); });
  }

  void Abort(const Status& cause) {
    asio::post(io_, [this, cause] { role_->Abort(cause); });
  }

  void Leave(Duration at_most) {
    const Duration limit = std::clamp(at_most, Duration{0}, kLimitMax);
    const auto done = std::make_shared<std::promise<void>>();
    asio::post(io_, [this, limit, done] {
      if (left_) return done->set_value();
      left_ = true;
      EndExchange(Status(Code::kAborted, "this rank leaves"));
      role_->Leave(limit, [done] { done->set_value(); });
    });
    (void)done->get_future().wait_for(limit + kThreadSlack);
  }

  // Sink, on the control thread.
  void Joined(Membership membership) override {
    const std::scoped_lock lock(mutex_);
    if (outcome_) return;
    membership_.emplace(std::move(membership));
    outcome_ = Status::Ok();
    outcome_known_.notify_all();
  }

  void Failed(const Status& status) override {
    const std::scoped_lock lock(mutex_);
    if (outcome_) return;
    outcome_ = status;
    outcome_known_.notify_all();
  }

  void Shared(std::vector<Bytes> shares) override { EndExchange(std::move(shares)); }

  void Emit(const Event& event) override {
    if (left_) return;
    const bool changeover =
        event.kind == Event::Kind::kPrepare || event.kind == Event::Kind::kDecided;
    if (!changeover && !NoteGone(event)) return;
    if (handler_) {
      handler_(event);
    } else {
      backlog_.push_back(event);
    }
  }

 private:
  // False: it is known already.
  bool NoteGone(const Event& event) {
    if (event.kind == Event::Kind::kAborted) {
      if (aborted_) return false;
      aborted_ = true;
    } else {
      if (gone_[event.rank]) return false;
      gone_[event.rank] = true;
    }
    if (first_gone_.ok()) {
      first_gone_ = event.status.ok()
                        ? Status(Code::kPeerLost, RankList({&event.rank, 1}) + " has left")
                        : event.status;
      EndExchange(first_gone_);
    }
    return true;
  }

  void EndExchange(Result<std::vector<Bytes>> end) {
    if (on_all_) std::exchange(on_all_, nullptr)(std::move(end));
  }

  void Loop() {
    asio::post(io_, [this] { role_->Start(); });
    while (!stopped_) {
      try {
        io_.run();
      } catch (const std::exception& error) {
        const Status status(Code::kInternal, std::string("control thread: ") + error.what());
        Log(LogLevel::kError, status.text());
        Failed(status);
        Emit({Event::Kind::kAborted, 0, status, {}, {}});
      }
    }
  }

  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  GuestCounts guests_;
  std::unique_ptr<Role> role_;

  std::mutex mutex_;
  std::condition_variable outcome_known_;
  std::optional<Status> outcome_;         // guarded by mutex_
  std::optional<Membership> membership_;  // written before outcome_, constant from then on

  // Only the control thread touches these.
  std::function<void(const Event&)> handler_;
  std::vector<Event> backlog_;  // each rank goes once, one abort, and a changeover needs an answer
  std::vector<bool> gone_;
  Status first_gone_;  // ok while all are here and nobody has aborted
  OnAll on_all_;       // of the exchange that is on
  bool aborted_ = false;
  bool left_ = false;
  bool stopped_ = false;

  std::thread thread_;
};

Result<std::unique_ptr<ControlPlane>> ControlPlane::Join(const Launch& launch,
                                                         const LocalInfo& info, Duration limit,
                                                         BindData bind_data) {
  FdOwner listen_fd(launch.listen_fd);
  const Status fault = Check(launch, info, bind_data);
  if (!fault.ok()) return fault.Context("join group");
  Log(LogLevel::kInfo,
      "control: " + Place(launch) + (launch.origin.empty() ? "" : ", says " + launch.origin) +
          (launch.local_rank ? ", local rank " + std::to_string(*launch.local_rank) : ""));
  RoleParts parts{launch, info, std::nullopt, {}, std::move(bind_data), nullptr, nullptr};
  if (!info.job_key_file.empty()) {
    const Result<wire::JobKey> key = ReadJobKey(info.job_key_file);
    if (!key.ok()) return key.status().Context("join group");
    parts.key.emplace(*key);
  }
  parts.limit = Connection::Clock::now() + std::clamp(limit, Duration{0}, kLimitMax);
  std::unique_ptr<Impl> impl;
  try {
    impl = std::make_unique<Impl>(std::move(parts), launch.world_size);
    listen_fd.Release();
  } catch (const std::exception& error) {
    return Status(Code::kUnavailable, std::string("start the control plane: ") + error.what());
  }
  const Status outcome = impl->Run();
  if (!outcome.ok()) return outcome.Context(Place(launch));
  return std::unique_ptr<ControlPlane>(new ControlPlane(std::move(impl)));
}

ControlPlane::ControlPlane(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ControlPlane::~ControlPlane() = default;

const Membership& ControlPlane::membership() const { return impl_->membership(); }
const GuestCounts& ControlPlane::guests() const { return impl_->guests(); }

void ControlPlane::SetEventHandler(std::function<void(const Event&)> handler) {
  impl_->SetEventHandler(std::move(handler));
}

void ControlPlane::Exchange(Bytes own, std::function<void(Result<std::vector<Bytes>>)> on_all) {
  impl_->Exchange(std::move(own), std::move(on_all));
}

void ControlPlane::Propose(const Change& change) { impl_->Propose(change); }

void ControlPlane::Answer(const Ready& ready) { impl_->Answer(ready); }

void ControlPlane::Abort(const Status& cause) { impl_->Abort(cause); }

void ControlPlane::Leave(Duration at_most) { impl_->Leave(at_most); }

}  // namespace optireduce::control
