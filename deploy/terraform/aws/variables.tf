variable "document" {
  description = "The document whose machines are made: a key of documents."
  type        = string
  validation {
    condition     = contains(["monolake-4", "monolake-16", "easegress", "juno", "spring-cloud-gateway", "loggly"], var.document)
    error_message = "document: one of monolake-4, monolake-16, easegress, juno, spring-cloud-gateway, loggly."
  }
}

variable "ssh_from" {
  description = "Your address, as a network: 203.0.113.7/32."
  type        = string
  validation {
    condition     = can(cidrhost(var.ssh_from, 0)) && var.ssh_from != "0.0.0.0/0"
    error_message = "ssh_from: an address such as 203.0.113.7/32, and not everybody's."
  }
}

variable "ssh_public_key" {
  description = "File with the public key by which ssh lets you in."
  type        = string
  default     = "~/.ssh/id_ed25519.pub"
}

variable "region" {
  description = "Region."
  type        = string
  default     = "us-east-1"
}

variable "zone" {
  description = "Availability zone; null: the region's first."
  type        = string
  default     = null
}

variable "hours" {
  description = "Hours after which the machines end by themselves."
  type        = number
  default     = 8
}

# What the documents say. juno names n1-highmem-32 of another cloud (32 CPUs, 208 GiB) and ten clients: r5.8xlarge is nearest.
# loggly names none.
variable "documents" {
  description = "Machines by document and host name: instance type and roles."
  type        = map(map(object({ type = string, roles = list(string) })))
  default = {
    "monolake-4" = {
      "client-1" = { type = "c6a.8xlarge", roles = ["client"] }
      "proxy"    = { type = "c5a.xlarge", roles = ["proxy"] }
      "origin-1" = { type = "c6a.2xlarge", roles = ["origin"] }
    }
    "monolake-16" = {
      "client-1" = { type = "c6a.8xlarge", roles = ["client"] }
      "proxy"    = { type = "c6a.4xlarge", roles = ["proxy"] }
      "origin-1" = { type = "c6a.2xlarge", roles = ["origin"] }
    }
    "easegress" = {
      "client-1" = { type = "r5.xlarge", roles = ["client"] }
      "proxy"    = { type = "r5.xlarge", roles = ["proxy"] }
      "origin-1" = { type = "r5.xlarge", roles = ["origin"] }
    }
    "juno" = {
      "client-1"  = { type = "r5.8xlarge", roles = ["client"] }
      "client-2"  = { type = "r5.8xlarge", roles = ["client"] }
      "client-3"  = { type = "r5.8xlarge", roles = ["client"] }
      "client-4"  = { type = "r5.8xlarge", roles = ["client"] }
      "client-5"  = { type = "r5.8xlarge", roles = ["client"] }
      "client-6"  = { type = "r5.8xlarge", roles = ["client"] }
      "client-7"  = { type = "r5.8xlarge", roles = ["client"] }
      "client-8"  = { type = "r5.8xlarge", roles = ["client"] }
      "client-9"  = { type = "r5.8xlarge", roles = ["client"] }
      "client-10" = { type = "r5.8xlarge", roles = ["client"] }
      "proxy"     = { type = "r5.8xlarge", roles = ["proxy"] }
      "origin-1"  = { type = "r5.8xlarge", roles = ["origin"] }
    }
    "spring-cloud-gateway" = {
      "client-1" = { type = "t2.micro", roles = ["client"] }
      "proxy"    = { type = "t2.micro", roles = ["proxy"] }
      "origin-1" = { type = "t2.micro", roles = ["origin"] }
    }
    "loggly" = {
      "client-1" = { type = "r5.xlarge", roles = ["client"] }
      "proxy"    = { type = "r5.xlarge", roles = ["proxy"] }
      "origin-1" = { type = "r5.xlarge", roles = ["origin"] }
    }
  }
}
