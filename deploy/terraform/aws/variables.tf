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
  description = "Region; null: the document's, or us-east-1 where it names none."
  type        = string
  default     = null
}

variable "zone" {
  description = "Availability zone; null: the region's first."
  type        = string
  default     = null
}

variable "hours" {
  description = "Hours after which the machines end by themselves; null: the document's."
  type        = number
  default     = null
}

# What the documents say; disks are in GB. juno names n1-highmem-32 of another cloud (32 CPUs, 208 GB): r5.8xlarge is nearest, and its
# stores had 450 GB. loggly's type and region are the defaults of the files beside it. `hours` are those of the suite at full scale (of
# juno, of JunoDB as published) and a quarter more, and an hour for the rest: tests/it/terraform.rs.
variable "documents" {
  description = "By document: hours, region, and its machines by host name, each with instance type, roles and disk."
  type = map(object({
    hours  = number
    region = optional(string, "us-east-1")
    machines = map(object({
      type  = string
      roles = list(string)
      disk  = optional(number, 30)
    }))
  }))
  default = {
    "monolake-4" = {
      hours = 9
      machines = {
        "client-1" = { type = "c6a.8xlarge", roles = ["client"] }
        "proxy"    = { type = "c5a.xlarge", roles = ["proxy"] }
        "origin-1" = { type = "c6a.2xlarge", roles = ["origin"] }
      }
    }
    "monolake-16" = {
      hours = 12
      machines = {
        "client-1" = { type = "c6a.8xlarge", roles = ["client"] }
        "proxy"    = { type = "c6a.4xlarge", roles = ["proxy"] }
        "origin-1" = { type = "c6a.2xlarge", roles = ["origin"] }
      }
    }
    "easegress" = {
      hours = 4
      machines = {
        "client-1" = { type = "r5.xlarge", roles = ["client"], disk = 100 }
        "proxy"    = { type = "r5.xlarge", roles = ["proxy"], disk = 100 }
        "origin-1" = { type = "r5.xlarge", roles = ["origin"], disk = 100 }
      }
    }
    "juno" = {
      hours = 36
      machines = {
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
        "store-1"   = { type = "r5.8xlarge", roles = ["proxy:store-1"], disk = 450 }
        "store-2"   = { type = "r5.8xlarge", roles = ["proxy:store-2"], disk = 450 }
        "store-3"   = { type = "r5.8xlarge", roles = ["proxy:store-3"], disk = 450 }
      }
    }
    "spring-cloud-gateway" = {
      hours = 6
      machines = {
        "client-1" = { type = "t2.micro", roles = ["client"] }
        "proxy"    = { type = "t2.micro", roles = ["proxy"] }
        "origin-1" = { type = "t2.micro", roles = ["origin"] }
      }
    }
    "loggly" = {
      hours  = 4
      region = "us-east-2"
      machines = {
        "client-1" = { type = "m5.xlarge", roles = ["client"] }
        "proxy"    = { type = "m5.xlarge", roles = ["proxy"] }
        "origin-1" = { type = "m5.xlarge", roles = ["origin"] }
      }
    }
  }
}
