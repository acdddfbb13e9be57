// The job key from its file, and the proofs by which master and rank show each other that they have
// it without sending it: BLAKE2b, keyed with the job key, over a label, both nonces and what is to
// be believed. Free functions: any thread. Nothing here prints or logs a secret.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_PROOF_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_PROOF_H_

#include <span>
#include <string>

#include "optireduce/status.h"
#include "transport/control/frame.h"
#include "transport/wire/keys.h"

namespace optireduce::control {

// The hash of the file's content without white space at its end. At least 16 bytes, at most 4096.
Result<wire::JobKey> ReadJobKey(const std::string& path);

Nonce MakeNonce();
std::uint32_t MakeGroupId();  // never 0

enum class Proves : std::uint8_t { kChallenge = 1, kClaim = 2, kWelcome = 3 };

Proof MakeProof(const wire::JobKey& key, Proves what, const Nonce& from_rank,
                const Nonce& from_master, std::span<const std::byte> body);
bool ProofHolds(const wire::JobKey& key, Proves what, const Nonce& from_rank,
                const Nonce& from_master, std::span<const std::byte> body, const Proof& proof);

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_PROOF_H_
